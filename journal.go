package gormlock

import (
	"database/sql"
	"slices"
	"strconv"
	"sync"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/advisory"
)

// journal is the memory side of one transaction: what must become again in the application's structs when the
// transaction, or a savepoint in it, is rolled back. It hears of the end on the goroutine that commits or rolls back.
type journal struct {
	tx        *sql.Tx
	begunWith *advisory.Request // the locks that travelled with its BEGIN
	deaf      bool              // it hears of no savepoints: Transaction keeps it, over a pool that tells nothing

	mu         sync.Mutex
	undo       []func()
	writes     []*versionWrite
	dooms      []error
	strict     int // how many calls of Transaction are open in it
	savepoints []savepoint
	held       []heldLock // the locks that an observer is to hear the end of
}

// savepoint is how long undo, dooms and held were when it was set.
type savepoint struct {
	name              string
	undo, dooms, held int
}

// journals holds the journals of open transactions, by *sql.Tx.
var journals sync.Map

// journalOf is the journal of the transaction that the statement runs in. It is nil outside of one, and in one that
// gormlock did not see begin.
func journalOf(stmt *gorm.Statement) *journal {
	if tx, ok := unprepared(stmt.ConnPool).(*sql.Tx); ok {
		if j, ok := journals.Load(tx); ok {
			return j.(*journal)
		}
	}
	return nil
}

// of makes j the journal of tx until tx has ended.
func (j *journal) of(tx *sql.Tx) {
	j.tx = tx
	journals.Store(tx, j)
}

// record keeps undo for the case that the transaction, or the savepoint it is in now, is rolled back. The newest undo
// runs first.
func (j *journal) record(undo func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.undo = append(j.undo, undo)
}

// doom makes the commit a rollback that returns err. A rollback to a savepoint set before lifts it.
func (j *journal) doom(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.dooms = append(j.dooms, err)
}

// enter begins a part of the transaction in which every stale write dooms it, however its error is taken. leave
// ends it, and returns what doomed it.
func (j *journal) enter() (leave func() error) {
	if j == nil {
		return func() error { return nil }
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.strict++
	before := len(j.dooms)
	return func() error {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.strict--
		if len(j.dooms) > before {
			return j.dooms[before]
		}
		return nil
	}
}

// isStrict reports whether every stale write dooms the transaction.
func (j *journal) isStrict() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.strict > 0
}

// part is a savepoint of a transaction whose journal is deaf, which end tells it the end of.
func (j *journal) part() (end func(failed bool)) {
	if j == nil || !j.deaf {
		return func(bool) {}
	}
	j.mu.Lock()
	name := "gormlock part " + strconv.Itoa(len(j.savepoints))
	j.mu.Unlock()
	j.Savepoint(name)
	return func(failed bool) {
		if failed {
			j.RollbackTo(name)
		}
		j.Release(name)
	}
}

// Savepoint implements sqltx.Watcher, as do the methods below.
func (j *journal) Savepoint(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.savepoints = append(j.savepoints, savepoint{name, len(j.undo), len(j.dooms), len(j.held)})
}

func (j *journal) RollbackTo(name string) {
	j.mu.Lock()
	i := j.last(name)
	if i < 0 {
		j.mu.Unlock()
		return
	}
	set := j.savepoints[i]
	j.savepoints = j.savepoints[:i+1]
	j.dooms = j.dooms[:set.dooms]
	undo := slices.Clone(j.undo[set.undo:])
	clear(j.undo[set.undo:])
	j.undo = j.undo[:set.undo]
	freed := slices.Clone(j.held[set.held:])
	j.held = j.held[:set.held]
	j.mu.Unlock()
	defer released(freed)
	putBack(undo)
}

func (j *journal) Release(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if i := j.last(name); i >= 0 {
		j.savepoints = j.savepoints[:i]
	}
}

func (j *journal) Commit() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.dooms) > 0 {
		return j.dooms[0]
	}
	return nil
}

func (j *journal) Ended(committed bool) {
	journals.Delete(j.tx)
	j.mu.Lock()
	undo, freed := j.undo, j.held
	j.undo, j.held = nil, nil
	j.mu.Unlock()
	defer released(freed)
	if !committed {
		putBack(undo)
	}
}

func (j *journal) last(name string) int {
	for i := len(j.savepoints) - 1; i >= 0; i-- {
		if j.savepoints[i].name == name {
			return i
		}
	}
	return -1
}

// putBack runs the newest step first, and all of them even if one panics.
func putBack(undo []func()) {
	for _, step := range undo {
		defer step() //nolint:revive // at the end of the function is when
	}
}
