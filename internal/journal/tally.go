package journal

import (
	"sync"
	"sync/atomic"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

func init() { fault.Added = NoteRefusal }

// Tally is what has happened so far in the transaction that a statement runs in. A statement that has failed is looked at twice, when it begins
// and when it ends: if something was stored meanwhile, by itself, its hooks or as associations, and something was refused, that must not
// be committed. What the hooks made of the error does not matter.
type Tally struct {
	stored, refused int
	known           bool
	own             *journal // counts where the transaction has no journal; the statement that begins it ends it
	call            call
}

// call is what one call of the program stores. GORM makes a statement for each owner of a call of Association(…).Append, on one
// configuration that is the call's own.
type call struct {
	of     *gorm.Config
	stored int // before it
}

// tallied are the journals that count where there is no other: they hear what GORM executes, and nobody else finds them.
var tallied struct {
	count atomic.Int64
	by    sync.Map // gorm.ConnPool → *journal
}

// talliedFor is the journal that counts for a statement whose transaction has no other, nil where none does.
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

// Count notes what has happened before a statement. It is not known, and not needed, outside of a transaction. Where the transaction has no
// journal, it is counted only if the statement may store more than its own rows.
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

// End reports what has happened since. Where nobody has counted, the statement has stored at most its own rows.
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
	j.call = t.call // statements of hooks are over
	stored, refused = j.past.stored > t.stored, j.refusals > t.refused
	if earlier := t.own != nil || j.past.stored > t.call.stored; refused && !stored && earlier {
		stored = statement.InAssociation() // for an owner before
	}
	return stored, refused
}

// NoteRefusal notes that gormlock has refused a statement, or a call, in the transaction of db. Nil is no refusal.
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
