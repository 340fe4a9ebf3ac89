package gormlock

import (
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/internal/xact"
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

// Timeout bounds the wait of the whole call. After it the error is [ErrLockTimeout], and the transaction is as usable as
// before. Zero and negative are an error. Default: [DefaultTimeout], else the session's lock_timeout.
func Timeout(d time.Duration) WaitOption {
	return WaitOption{Option: advisory.Timeout(d), timeout: d}
}

// Shared takes an advisory lock that many transactions can hold at the same time, while none holds it exclusively.
// Default: exclusive.
func Shared() LockOption { return advisory.Shared() }

// AllowSnapshot takes an advisory lock at REPEATABLE READ and SERIALIZABLE, although the transaction may read rows as they
// were before the lock. Default: [ErrSnapshotTaken].
func AllowSnapshot() LockOption { return advisory.AllowSnapshot() }

// WithXactLock is a scope. Its statement first takes the advisory lock, in the transaction that runs the statement. The
// lock is held until that transaction ends, or is rolled back to an earlier savepoint.
//
//	tx.Scopes(gormlock.WithXactLock(key)).First(&invoice, 42)
//	db.Scopes(gormlock.WithXactLock(key)).Create(&invoice) // GORM's own transaction is enough
//
// Without a transaction (a query outside of one, SkipDefaultTransaction) the error is [ErrNoTransaction], and nothing is
// executed. Several locks on one statement are taken together, with the strictest of their waiting rules. Associations
// saved with the statement take no second lock. In db.Scopes(lock).Transaction(…) the statements of the transaction take
// the lock: nothing is held before the first of them.
//
// gorm.G drops the scopes and clauses of the db it is given before any plugin sees them, so gorm.G[T](tx.Scopes(lock))
// takes no lock: give it the clause, [XactLock]. On a sub-query, a group of conditions or the conditions of a joined
// association a lock is [ErrSubQuery], and nothing is executed. On a raw sub-query no lock is taken, because GORM copies
// its text without asking a plugin. Put the lock on the outer statement.
func WithXactLock(key lockkey.Key, opts ...LockOption) func(*gorm.DB) *gorm.DB {
	return xact.AddTo(XactLock(key, opts...).xactLock)
}

// XactLock is [WithXactLock] as a clause, for db.Clauses and gorm.G. Its method ModifyStatement fits the Scopes of
// gorm.G.
//
//	gorm.G[Invoice](tx, gormlock.XactLock(key)).Find(ctx)
func XactLock(key lockkey.Key, opts ...LockOption) XactLockClause {
	return XactLockClause{xact.New(newRequest([]lockkey.Key{key}, opts))}
}

func newRequest(keys []lockkey.Key, opts []LockOption) (*lockrequest.Request, error) {
	for _, o := range opts {
		if wait, ok := o.(WaitOption); ok && wait.Option == nil {
			return nil, fmt.Errorf("%w: a zero WaitOption: use Try or Timeout", fault.ErrOption)
		}
	}
	return lockrequest.New(keys, opts...)
}

// XactLockClause is the lock that a statement takes before it runs: what [XactLock] returns. It writes no SQL into the
// statement.
type XactLockClause struct{ xactLock }

type xactLock = xact.Lock

// AcquireXactLock takes all of the locks now, or none, in the transaction tx and in one round trip. With [Try], a lock
// that somebody else holds is ErrNotAcquired. With [Timeout], a lock that is not granted in time is ErrLockTimeout. After both, tx
// is as usable as before. Outside of a transaction the error is ErrNoTransaction. Locks on tx are taken too. See [advisory.Acquire].
func AcquireXactLock(tx *gorm.DB, keys []lockkey.Key, opts ...LockOption) error {
	if err := install.Usable(tx); err != nil {
		return err
	}
	request, err := newRequest(keys, opts)
	if err != nil {
		return err
	}
	return xact.AcquireAsked(tx, request)
}
