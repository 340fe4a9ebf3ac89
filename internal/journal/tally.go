package journal

import (
	"sync"
	"sync/atomic"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

func init() { fault.Added = NoteRefusal }

// Tally counts, at the beginning of a statement, how much its transaction has stored and how often gormlock has refused something in it. Both are
// counted again at the end. If both have grown, by the statement, its hooks or its associations, the transaction must not commit, because it would
// store half of what was asked for. It does not matter whether the hooks dropped the error.
type Tally struct {
	stored, refused int
	known           bool
	own             *journal // counts for this statement alone, if the transaction has no journal
	call            call
}

// call is a call of the program that makes several statements: Association(…).Append makes one for each owner. They share a *gorm.Config that
// no other call has.
type call struct {
	of     *gorm.Config
	stored int // past.stored before it
}

// tallied holds the journals that only count. They hear of statements that GORM executes, and Of does not find them.
var tallied struct {
	count atomic.Int64
	by    sync.Map // gorm.ConnPool → *journal
}

// talliedFor is the journal that only counts for a statement's transaction, nil if there is none.
func talliedFor(stmt *gorm.Statement) *journal {
	if tallied.count.Load() == 0 {
		return nil
	}
	pool := statement.Unprepared(stmt.ConnPool)
	if !isKey(pool) {
		return nil
	}
	j, _ := tallied.by.Load(pool)
	found, _ := j.(*journal)
	return found
}

// counting is the journal that counts for a statement.
func counting(stmt *gorm.Statement) *journal {
	if j := Of(stmt); j != nil {
		return j
	}
	return talliedFor(stmt)
}

// Count begins to count for a statement. Outside of a transaction nothing is counted, because nothing can be rolled back. If the transaction has no
// journal, and the statement may store more than its own rows, Count makes one that only counts.
func Count(stmt *gorm.Statement, storesMore bool) (t Tally, known bool) {
	if stmt.DryRun {
		return t, false
	}
	j := counting(stmt)
	if j == nil {
		pool := statement.Unprepared(stmt.ConnPool)
		if !storesMore || statement.Transaction(stmt) == nil || !isKey(pool) {
			return t, false
		}
		j = &journal{pool: pool}
		tallied.by.Store(pool, j)
		tallied.count.Add(1)
		t.own = j
	}
	j.Mu.Lock()
	defer j.Mu.Unlock()
	t.known, t.stored, t.refused = true, j.past.stored, j.refusals
	if j.call.of != stmt.Config {
		j.call = call{stmt.Config, j.past.stored}
	}
	t.call = j.call
	return t, true
}

// End reports whether something was stored since Count, and whether something was refused. If nothing was counted, the statement has stored at
// most its own rows.
func (t *Tally) End(db *gorm.DB) (stored, refused bool) {
	if t == nil || !t.known {
		return db.RowsAffected > 0, false
	}
	j := counting(db.Statement)
	if t.own != nil {
		j = t.own
		tallied.by.Delete(j.pool)
		tallied.count.Add(-1)
	}
	if t.known = false; j == nil {
		return false, false
	}
	j.Mu.Lock()
	defer j.Mu.Unlock()
	j.call = t.call // a statement of a hook may have set its own
	stored, refused = j.past.stored > t.stored, j.refusals > t.refused
	if earlier := t.own != nil || j.past.stored > t.call.stored; refused && !stored && earlier {
		stored = statement.InAssociation() // stored for an earlier owner
	}
	return stored, refused
}

// NoteRefusal notes that gormlock has refused a statement or a call in the transaction of db. A nil err is no refusal.
func NoteRefusal(db *gorm.DB, err error) {
	if err == nil || db.DryRun {
		return
	}
	if j := counting(db.Statement); j != nil {
		j.Mu.Lock()
		defer j.Mu.Unlock()
		j.refusals++
	}
}

// Stored implements sqltx.Watcher.
func (j *journal) Stored() {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	j.past.stored++
}
