package journal

import (
	"sync"
	"sync/atomic"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

func init() { fault.Added = NoteRefusal }

// Tally is how much a transaction had stored, and how often gormlock had refused something in it, when a statement began. The same is counted when
// the statement ends. If both have grown, by the statement itself, its hooks or its associations, the transaction must not commit half of what was
// asked for. What the hooks made of the error does not matter.
type Tally struct {
	stored, refused int
	known           bool
	own             *journal // counts for this statement alone, where the transaction has no journal
	call            call
}

// call is a call of the program that makes several statements: Association(…).Append makes one for each owner. They share a configuration that no
// other call has.
type call struct {
	of     *gorm.Config
	stored int // before it
}

// tallied are the journals that only count. They hear what GORM executes, and are found by nothing else.
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

// Count begins to count for a statement. Outside of a transaction nobody counts: there is nothing to roll back. Where the transaction has no journal,
// one is made for a statement that may store more than its own rows.
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

// End reports whether something was stored since, and whether something was refused. Where nobody has counted, the statement has stored at most its
// own rows.
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
	j.call = t.call // not that of a hook's statement
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
