package gormlock

import (
	"database/sql"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/sqltx"
	"github.com/gormlock/gormlock/lockkey"
)

// LockOption changes how an advisory lock is taken: [Try], [Timeout], [Shared], [AllowSnapshot].
type LockOption = advisory.Option

// WaitOption says how long a lock is waited for. It serves advisory locks and row locks alike.
type WaitOption struct {
	advisory.Option
	try     bool
	timeout time.Duration
}

// Try does not wait: a lock that somebody else holds is [ErrNotAcquired] at once. Default: wait.
func Try() WaitOption {
	return WaitOption{Option: advisory.Try(), try: true}
}

// Timeout is the budget of the whole call: past it the call answers [ErrLockTimeout], and the transaction is as usable
// as it was. Zero and negative are an error. Default: [DefaultTimeout], else the session's lock_timeout.
func Timeout(d time.Duration) WaitOption {
	return WaitOption{Option: advisory.Timeout(d), timeout: d}
}

// Shared takes an advisory lock that any number of transactions can hold together, and none exclusively meanwhile.
// Default: exclusive.
func Shared() LockOption { return advisory.Shared() }

// AllowSnapshot takes an advisory lock at REPEATABLE READ and SERIALIZABLE although what the transaction reads may be
// older than the lock. Default: [ErrSnapshotTaken].
func AllowSnapshot() LockOption { return advisory.AllowSnapshot() }

// WithXactLock is a scope: the statement it is put on first takes the advisory lock, in the transaction that runs it.
// The lock is held until that transaction ends, or is rolled back to a savepoint set before.
//
//	tx.Scopes(gormlock.WithXactLock(key)).First(&invoice, 42)
//	db.Scopes(gormlock.WithXactLock(key)).Create(&invoice) // GORM's own transaction is enough
//
// A statement that runs in no transaction (a query outside of one, SkipDefaultTransaction) is [ErrNoTransaction] and
// executes nothing. Several locks on one statement are taken together, under the strictest of their waiting rules.
// Associations saved with the statement take no second lock. On a db that a transaction is then begun from, the lock
// belongs to the statements of the transaction, and nothing is held before the first of them; a savepoint takes none.
//
// gorm.G drops the scopes and clauses of the db it is given, before any plugin sees them, so gorm.G[T](tx.Scopes(lock))
// takes no lock: give it the clause, [XactLock]. A lock on a sub-query, on a group of conditions or on the conditions of
// a joined association is [ErrSubQuery], and nothing is executed; only on a raw sub-query, whose text GORM copies without
// asking any plugin, no lock is taken. Put it on the statement around them.
func WithXactLock(key lockkey.Key, opts ...LockOption) func(*gorm.DB) *gorm.DB {
	lock := XactLock(key, opts...)
	return func(db *gorm.DB) *gorm.DB { return db.Clauses(lock) }
}

// XactLock is [WithXactLock] as a clause, for db.Clauses and gorm.G. Its method ModifyStatement fits the Scopes of
// gorm.G.
//
//	gorm.G[Invoice](tx, gormlock.XactLock(key)).Find(ctx)
func XactLock(key lockkey.Key, opts ...LockOption) XactLockClause {
	request, err := newRequest([]lockkey.Key{key}, opts)
	return XactLockClause{request, err}
}

func newRequest(keys []lockkey.Key, opts []LockOption) (*advisory.Request, error) {
	for _, o := range opts {
		if wait, ok := o.(WaitOption); ok && wait.Option == nil {
			return nil, fmt.Errorf("%w: a zero WaitOption, use Try or Timeout", ErrOption)
		}
	}
	return advisory.NewRequest(keys, opts...)
}

// XactLockClause is the lock that a statement takes before it runs. It writes no SQL into the statement.
type XactLockClause struct {
	request *advisory.Request
	err     error
}

const xactLockName = "gormlock:xact"

// ModifyStatement implements [gorm.StatementModifier].
func (l XactLockClause) ModifyStatement(stmt *gorm.Statement) {
	switch {
	case l.err != nil:
		fail(stmt.DB, l.err)
	case l.request == nil:
		fail(stmt.DB, fmt.Errorf("%w: no keys to lock", lockkey.ErrInvalid))
	case pluginOf(stmt.DB) == nil:
		fail(stmt.DB, ErrNotInstalled)
	default:
		request := l.request
		if earlier := xactLockOn(stmt); earlier != nil {
			request = earlier.And(request)
		}
		stmt.Clauses[xactLockName] = clause.Clause{Name: xactLockName, Expression: XactLockClause{request: request}}
		markConditions(stmt, lockedHere{l.request})
	}
}

// Build implements [clause.Expression]. There is nothing to build.
func (XactLockClause) Build(clause.Builder) {}

// Name is empty: the clause itself writes nothing.
func (XactLockClause) Name() string { return "" }

// MergeClause merges nothing: ModifyStatement does it.
func (XactLockClause) MergeClause(*clause.Clause) {}

// xactLockOn is the request that the statement carries, nil when it carries none.
func xactLockOn(stmt *gorm.Statement) *advisory.Request {
	if lock, ok := stmt.Clauses[xactLockName].Expression.(XactLockClause); ok {
		return lock.request
	}
	return nil
}

// AcquireXactLock takes the locks now, in the transaction tx: all or none, in one round trip. See [advisory.Acquire].
func AcquireXactLock(tx *gorm.DB, keys []lockkey.Key, opts ...LockOption) error {
	if err := usable(tx); err != nil {
		return err
	}
	request, err := newRequest(keys, opts)
	if err != nil {
		return err
	}
	if tx.DryRun {
		return nil
	}
	return acquire(tx, request)
}

// usable says why a db can run nothing.
func usable(db *gorm.DB) error {
	if db == nil || db.Config == nil || db.Statement == nil {
		return fmt.Errorf("gormlock: %w: a nil *gorm.DB", gorm.ErrInvalidDB)
	}
	if db.Error != nil {
		return db.Error
	}
	if pluginOf(db) == nil {
		return ErrNotInstalled
	}
	return nil
}

// beside is a db with what db carries, to make another statement of. In a hook, where db is a new session on the hook's
// own statement, Session alone would carry on with that one.
func beside(db *gorm.DB) *gorm.DB {
	if own := db.Set("gormlock:own", true); own != db {
		return own
	}
	return db.Session(&gorm.Session{})
}

// acquire takes the locks in the transaction that db runs in.
func acquire(db *gorm.DB, request *advisory.Request) error {
	if !isPostgres(db) {
		return fmt.Errorf("%w, not %s: lock %s", ErrNotPostgres, db.Name(), request)
	}
	tx := transactionOf(db.Statement)
	if tx == nil {
		return fmt.Errorf("%w: lock %s", ErrNoTransaction, request)
	}
	plugin := pluginOf(db)
	plugin.keyNames.note(databaseUnder(db.ConnPool), request)
	began := plugin.began()
	err := request.Within(plugin.defaultTimeout).Acquire(db.Statement.Context, tx)
	plugin.tellLocks(db.Statement.Context, request, began, journalOf(db.Statement), err)
	return err
}

// transactionOf is the transaction the statement runs in, nil when there is none.
func transactionOf(stmt *gorm.Statement) advisory.Tx {
	if tx, ok := unprepared(stmt.ConnPool).(advisory.Tx); ok {
		return tx
	}
	return nil
}

// unprepared is what lies under GORM's caches of prepared statements, which would prepare a text that is several
// statements. A session with PrepareStmt on a database with PrepareStmt is two of them.
func unprepared(pool gorm.ConnPool) gorm.ConnPool {
	for {
		prepared, ok := pool.(*gorm.PreparedStmtTX)
		if !ok {
			return pool
		}
		pool = prepared.Tx
	}
}

// takeXactLocks takes the statement's locks, unless they came with the BEGIN of its transaction.
func takeXactLocks(db *gorm.DB) {
	stmt := db.Statement
	request := xactLockOn(stmt)
	if request == nil || isSavepoint(stmt) {
		return
	}
	carried := requestIn(stmt.Context)
	stmt.Context = spend(stmt.Context)
	if db.Error != nil {
		return
	}
	if db.DryRun {
		refuseSubQuery(db)
		return
	}
	if j := journalOf(stmt); carried != nil && j != nil && j.begunWith == carried {
		return
	}
	if err := acquire(db, request); err != nil {
		fail(db, err)
	}
}

// isSavepoint reports whether the statement is one of those that GORM nests transactions with. They carry the clauses of
// the db the transaction began from; a lock asked for before ROLLBACK TO would fail in the transaction it is to save.
func isSavepoint(stmt *gorm.Statement) bool {
	if stmt.SQL.Len() == 0 {
		return false
	}
	text := stmt.SQL.String()
	return strings.HasPrefix(text, "SAVEPOINT ") || strings.HasPrefix(text, "ROLLBACK TO ")
}

// refuseRow gives a failed Row a row that says why: GORM would give nil, which panics in Scan.
func refuseRow(db *gorm.DB) {
	if db.Error == nil {
		return
	}
	if rows, ok := db.Get("rows"); ok && rows == false {
		if _, failed := db.Statement.Settings.Load(failure{}); failed {
			db.Statement.Dest = sqltx.FailedRow(db.Error)
		}
	}
}

// refuseSubQuery makes the statement around a sub-query that carries a lock fail. GORM builds the sub-query in a dry
// run of its own and drops its error, but not its arguments.
func refuseSubQuery(db *gorm.DB) {
	if isSubQuery() {
		failSubQuery(db.Statement, ErrSubQuery)
	}
}

// failSubQuery makes the statement around the sub-query stmt fail with err.
func failSubQuery(stmt *gorm.Statement, err error) {
	stmt.AddClause(clause.Where{Exprs: []clause.Expression{
		clause.Expr{SQL: "CAST(? AS boolean)", Vars: []any{sqltx.FailedValue{Err: err}}},
	}})
}

// isSubQuery reports whether the statement being built is an argument of another. A dry run tells it by nothing else
// than who asked for it.
func isSubQuery() bool {
	for function := range callers() {
		if strings.HasSuffix(function, "gorm.(*Statement).AddVar") {
			return true
		}
	}
	return false
}

// callers are the functions that wait for this one, the nearest first.
func callers() iter.Seq[string] {
	var pcs [128]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	return func(yield func(string) bool) {
		for {
			frame, more := frames.Next()
			if !yield(frame.Function) || !more {
				return
			}
		}
	}
}

var _ gorm.TxBeginner = (*connPool)(nil)
var _ gorm.GetDBConnector = (*connPool)(nil)
var _ advisory.Tx = (*sql.Tx)(nil)
