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

// journal remembers what one transaction changed in the structs of the application, and restores it when the transaction,
// or a savepoint in it, is rolled back. It hears of the end on the goroutine that commits or rolls back.
type journal struct {
	beginning
	pool gorm.ConnPool // the transaction, as GORM's statements hold it

	Mu       sync.Mutex
	past     past
	naming   naming
	strict   int  // number of open calls of Transaction
	refusals int  // number of statements and calls that gormlock has refused
	call     call // the last one
	halfway  halfway
	atWork   atWork
	ending
}

// beginning is how a transaction was begun.
type beginning struct {
	BegunWith *lockrequest.Request // the locks that travelled with its BEGIN
	locks     lockrequest.Opening  // how they travelled
	opening   sqltx.Opening        // what it began with
	deaf      bool                 // its connection reports nothing: it only hears what GORM executes, see Hear
	alone     bool                 // it was begun for one statement, see Adopt
	plugin    *install.Settings
	database  *sql.DB // that of the application; nil: it is not known
}

// naming is what names of tables stand for in a transaction.
type naming struct {
	paths   int // how often that may have changed
	remade  int // how often tables may have been made, dropped or renamed
	tables  *Tables
	learned map[ownQuestion]install.Answer // what the server has said of names, if that holds in this transaction only
}

// atWork are the statements that may still put their structs back.
type atWork struct {
	count int
	began int64    // the moment when the outermost of them began
	undo  []func() // what is to be taken back when they have ended
}

// ending is what is known of the end of a transaction.
type ending struct {
	over   bool // a text has ended it, and no other was begun
	undone bool // that was a rollback, of what was written before
	asked  bool // a commit is on its way
	astray bool // nothing of it is committed any more, and its structs wait for whoever uses them
	strays *Astray
	gone   bool // it has ended for good
	ended  bool // and memory has followed
	doubt  bool // whether it was committed is not known
}

// Step is something that happened to memory in a transaction.
type Step interface {
	// Undo takes it back: the server has.
	Undo()
	// Lose makes unread what it left in memory: whether the server has taken it back is not known.
	Lose()
}

// Lingering is a Step that stays when it is taken back to a savepoint, and is taken back again with what was written before that.
type Lingering interface{ Lingers() }

// Regrouper is a Step that looks, before steps are taken back, where the structs of all steps are now.
type Regrouper interface {
	// Regroup is called for one of the steps. Undone are to be taken back, or are lost.
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

// undoing is a Step that is taken back where it might be.
type undoing func()

func (u undoing) Undo() { u() }
func (u undoing) Lose() { u() }

// Of is the journal of the transaction that the statement runs in. It is nil outside of one, and in one whose end
// gormlock does not see.
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

// Keep keeps a step for the case that the transaction, or the savepoint it is in now, is rolled back. The newest step is
// taken back first. It reports false where the step is committed already: a text has ended the transaction.
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

// Record keeps a function that takes a step back. It is called too where it is not known whether it must be.
func (j *journal) Record(undo func()) { j.Keep(undoing(undo)) }

// Written is how many statements may have written something in the transaction, by whatever means, and were not rolled
// back.
func (j *journal) Written() int {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	return j.past.written
}

// Path is a number for what names of tables stand for now. If it is that of an earlier statement, a name stands for the same table, as
// far as the texts of the transaction tell.
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

// Ever visits all steps of the transaction, those too that were taken back, the oldest first.
func (j *journal) Ever(visit func(Step)) {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	j.past.all().Since(0, 0, visit)
}

// Doom makes the commit a rollback that returns err. A rollback to a savepoint set before lifts it.
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
	case j.astray: // since ctx was looked at
		if err := j.opening.Ended(); err != nil {
			return err
		}
	}
	j.asked = true
	return nil
}

// errUndone is the error of a commit that commits nothing, and says so nowhere.
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

// end forgets the past of the transaction. The steps that follow from its end run outside of the lock.
func (j *journal) end(with func(steps taken, all *Ever)) {
	j.catchUp()
	j.Mu.Lock()
	all := j.past
	j.past, j.naming.learned, j.naming.tables = past{}, nil, nil
	if j.naming.remade > 0 && j.plugin != nil {
		j.plugin.Learned.Forget() // also what others have learned meanwhile, who did not see it yet
		j.naming.remade = 0
	}
	j.Mu.Unlock()
	defer Released(all.held)
	defer freeAll(all.pretended)
	with(taken{all.steps, all.wrote}, all.ever) // which there is if there are steps
}

// undo undoes the steps, the newest first, and all of them even if one panics.
func undo(undone taken, all *Ever) {
	regroup(undone, all, false)
	for _, step := range undone.steps {
		defer step.Undo() //nolint:revive // at the end of the function is when
	}
}

// lose does the same if it is not known what the server has undone.
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
