package journal

import (
	"database/sql"
	"runtime"
	"slices"
	"sync"
	"weak"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/statement"
)

// halfway holds the calls of Association(…).Append and Replace in a transaction that have stored rows of maps and have not updated their owner
// yet. Each call is represented by the number of hooks around it.
type halfway struct {
	mu    sync.Mutex
	calls []int
}

// unjournaled holds such calls for transactions without a journal.
var unjournaled sync.Map // weak.Pointer[sql.Tx] → *halfway

// halfwayIn returns the calls of the statement's transaction, nil if there are none. If noted is true, it makes a place to note one.
func halfwayIn(stmt *gorm.Statement, noted bool) *halfway {
	if j := Of(stmt); j != nil {
		return &j.halfway
	}
	tx, is := statement.Unprepared(stmt.ConnPool).(*sql.Tx)
	if !is {
		return nil
	}
	key := weak.Make(tx)
	found, there := unjournaled.Load(key)
	if !there && noted {
		if found, there = unjournaled.LoadOrStore(key, &halfway{}); !there {
			runtime.AddCleanup(tx, func(key weak.Pointer[sql.Tx]) { unjournaled.Delete(key) }, key)
		}
	}
	h, _ := found.(*halfway)
	return h
}

// NoteHalfway notes that the statement has stored the row of a map.
func NoteHalfway(stmt *gorm.Statement) {
	if h := halfwayIn(stmt, true); h != nil {
		h.take()
		h.mu.Lock()
		defer h.mu.Unlock()
		h.calls = append(h.calls, statement.HookDepth())
	}
}

// IsHalfway reports whether the statement belongs to a call that has stored rows of maps.
func IsHalfway(stmt *gorm.Statement) bool {
	h := halfwayIn(stmt, false)
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.calls) > 0 && slices.Contains(h.calls, statement.HookDepth())
}

// TakeHalfway forgets the call, and reports whether there was one.
func TakeHalfway(stmt *gorm.Statement) bool {
	h := halfwayIn(stmt, false)
	return h != nil && h.take()
}

func (h *halfway) take() (is bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.calls) == 0 {
		return false
	}
	hooks := statement.HookDepth()
	h.calls = slices.DeleteFunc(h.calls, func(depth int) bool {
		is = is || depth == hooks
		return depth >= hooks // calls in deeper hooks have ended
	})
	return is
}
