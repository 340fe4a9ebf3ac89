package journal

import (
	"database/sql"
	"errors"
	"reflect"
	"slices"
	"sync"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/internal/sqltx"
	"github.com/gormlock/gormlock/internal/statement"
)

// journal remembers what one transaction changed in the structs of the application, and restores it when the transaction
// is rolled back, wholly or to a savepoint. Its methods for the end run on the goroutine that commits or rolls back.
type journal struct {
	beginning
	pool gorm.ConnPool // the transaction, as GORM's statements hold it

	Mu       sync.Mutex
	past     past
	naming   naming
	strict   int  // number of open calls of Transaction
	refusals int  // number of statements and calls that gormlock has refused
	call     call // the last call of the program
	halfway  halfway
	atWork   atWork
	ending
}

// beginning is how a transaction was begun.
type beginning struct {
	BegunWith *lockrequest.Request // the locks that travelled with its BEGIN
	locks     lockrequest.Opening  // how they travelled
	opening   sqltx.Opening        // what it began with
	deaf      bool                 // the connection reports nothing: the journal only hears of statements that GORM executes, see Hear
	alone     bool                 // it was begun for one statement, see Adopt
	plugin    *install.Settings
	database  *sql.DB // the application's; nil: it is not known
}

// naming says which tables names stand for in a transaction.
type naming struct {
	paths   int // how often the meaning of names may have changed
	remade  int // how often tables may have been made, dropped or renamed
	tables  *Tables
	learned map[ownQuestion]install.Answer // the server's answers about names that hold in this transaction only
}

// atWork counts the running statements that may still restore their structs.
type atWork struct {
	count int
	began int64    // the moment when the outermost of them began
	undo  []func() // to be called when they have ended
}

// ending is what is known of the end of a transaction.
type ending struct {
	over   bool // a text has ended it, and no other was begun
	undone bool // that was a rollback, and the transaction had written something
	asked  bool // a commit is on its way
	astray bool // ctx has rolled it back, and its structs are restored when somebody uses them
	strays *Astray
	gone   bool // it has ended for good
	ended  bool // Ended was called, and memory follows
	doubt  bool // whether it was committed is not known
}

// Step is something that happened to memory in a transaction.
type Step interface {
	// Undo undoes it in memory: the server has undone it.
	Undo()
	// Lose makes its structs unread: it is not known whether the server has undone it.
	Lose()
}

// Lingering is a Step that stays in the journal after a rollback to a savepoint, and is undone again with earlier steps.
type Lingering interface{ Lingers() }

// Regrouper is a Step that finds out, before steps are undone, where the structs of all steps are now.
type Regrouper interface {
	// Regroup is called on one of the steps. The steps in undone are about to be undone, or lost.
	Regroup(undone []Step, all *Ever, lost bool)
}

func regroup(undone taken, all *Ever, lost bool) {
	for _, step := range undone.steps {
		if regrouper, is := step.(Regrouper); is {
			all.Wrote = undone.wrote
			regrouper.Regroup(undone.steps, all, lost)
			return
		}
	}
}

// undoing is a Step that is undone even if it is not certain that it must be.
type undoing func()

func (u undoing) Undo() { u() }
func (u undoing) Lose() { u() }

// Of is the journal of the transaction that the statement runs in. It is nil outside of a transaction, and if gormlock
// does not see the transaction's end.
func Of(stmt *gorm.Statement) *journal {
	pool := statement.Unprepared(stmt.ConnPool)
	if !isKey(pool) {
		return nil
	}
	return drawerOf(pool).get(pool)
}

// isKey reports whether a transaction can be found by its pool.
func isKey(pool gorm.ConnPool) bool {
	switch pool.(type) {
	case *sql.Tx:
		return true
	case *sql.DB, *ConnPool, nil:
		return false
	}
	return reflect.TypeOf(pool).Comparable()
}

// of makes j the journal of the transaction until it has ended.
func (j *journal) of(pool gorm.ConnPool) {
	j.Mu.Lock()
	j.pool = pool
	j.Mu.Unlock()
	drawerOf(pool).put(pool, j)
}

// Keep keeps a step for the case that the transaction is rolled back, wholly or to the current savepoint. The newest step is
// undone first. It reports false if a text has ended the transaction, so the step is committed already.
func (j *journal) Keep(step Step) (kept bool) {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	if !j.over {
		j.past.steps = append(j.past.steps, step)
		j.past.all().keep(step)
		if j.gone || j.astray {
			j.strayStep(step, true)
		}
	}
	return !j.over
}

// Record keeps a function that undoes a step. It is called even if it is not certain that the step must be undone.
func (j *journal) Record(undo func()) { j.Keep(undoing(undo)) }

// Written is the number of statements that may have written something in the transaction and were not rolled back.
func (j *journal) Written() int {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	return j.past.written
}

// Path is a number for the current meaning of table names. Two statements with the same number use a name for the same table, as
// far as the texts of the transaction show.
func (j *journal) Path() int {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	return j.past.path
}

// Has reports whether a step of this kind is kept.
func (j *journal) Has(is func(Step) bool) bool {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	return slices.ContainsFunc(j.past.steps, is)
}

// Ever visits all steps of the transaction, even undone ones, the oldest first.
func (j *journal) Ever(visit func(Step)) {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	j.past.all().Since(0, 0, visit)
}

// Doom makes the commit a rollback that returns err. A rollback to an earlier savepoint lifts it.
func (j *journal) Doom(err error) {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	j.past.dooms = append(j.past.dooms, err)
}

// enter begins a part of the transaction in which every stale write dooms the transaction, even if its error is dropped.
// leave ends the part, and returns what doomed it.
func (j *journal) enter() (leave func() error) {
	if j == nil {
		return func() error { return nil }
	}
	j.Mu.Lock()
	defer j.Mu.Unlock()
	j.strict++
	before := len(j.past.dooms)
	return func() error {
		j.Mu.Lock()
		defer j.Mu.Unlock()
		j.strict--
		if len(j.past.dooms) > before {
			return j.past.dooms[before]
		}
		return nil
	}
}

// IsStrict reports whether every stale write dooms the transaction.
func (j *journal) IsStrict() bool {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	return j.strict > 0
}

// Commit implements sqltx.Watcher, as do Executed and Ended.
func (j *journal) Commit() error {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	switch {
	case len(j.past.dooms) > 0:
		return j.past.dooms[0]
	case j.over && j.undone:
		return errUndone
	case j.astray: // ctx has ended since the caller looked at it
		if err := j.opening.Ended(); err != nil {
			return err
		}
	}
	j.asked = true
	return nil
}

// errUndone is the error of a commit that would commit nothing without an error.
var errUndone = errors.New("gormlock: not committed: a statement has rolled back what was written in the transaction, and ended it")

// Ended is called once, when the transaction has.
func (j *journal) Ended(committed bool) {
	drawerOf(j.pool).put(j.pool, nil)
	defer j.release()
	j.Mu.Lock()
	j.ended = true
	doubt := j.doubt
	j.Mu.Unlock()
	switch {
	case committed:
		j.end(keepAll)
	case doubt:
		j.end(lose)
	default:
		j.end(undo)
	}
}

// InDoubt implements sqltx.Watcher.
func (j *journal) InDoubt() {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	j.doubt = true
}

// isInDoubt reports whether InDoubt was called.
func (j *journal) isInDoubt() bool {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	return j.doubt
}

// end forgets the past of the transaction, and passes its steps to with, outside of the lock.
func (j *journal) end(with func(steps taken, all *Ever)) {
	j.catchUp()
	j.Mu.Lock()
	all := j.past
	j.past, j.naming.learned, j.naming.tables = past{}, nil, nil
	if j.naming.remade > 0 && j.plugin != nil {
		j.plugin.Learned.Forget() // also what other transactions learned meanwhile, which did not see the change yet
		j.naming.remade = 0
	}
	j.Mu.Unlock()
	defer Released(all.held)
	defer freeAll(all.pretended)
	with(taken{all.steps, all.wrote}, all.ever) // ever is not nil if there are steps
}

// undo undoes the steps, the newest first, and all of them even if one panics.
func undo(undone taken, all *Ever) {
	regroup(undone, all, false)
	for _, step := range undone.steps {
		defer step.Undo() //nolint:revive // at the end of the function is when
	}
}

// lose loses the steps: it is not known whether the server has undone them.
func lose(lost taken, all *Ever) {
	regroup(lost, all, true)
	for _, step := range lost.steps {
		defer step.Lose() //nolint:revive // at the end of the function is when
	}
}

// keepAll leaves memory as it is because the steps are committed, and calls what waits for the commit.
func keepAll(kept taken, _ *Ever) {
	for _, step := range kept.steps {
		if do, waits := step.(afterCommit); waits {
			do()
		}
	}
}
