package gormlock

import (
	"database/sql"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/attempt"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/lockkey"
)

// TxOption changes what [Transaction] begins and how often it tries.
type TxOption interface {
	apply(*attempt.Call) error
}

type txOption func(*attempt.Call) error

func (o txOption) apply(t *attempt.Call) error { return o(t) }

// Locking begins the transaction with the advisory lock held. BEGIN and any number of locks are one round trip. At
// REPEATABLE READ and above the lock is held before the snapshot is taken. On one connection (db.Connection) and with
// [PlainTransactions] gormlock cannot do that, and the error is [ErrSnapshotTaken]. Default: no lock.
func Locking(key lockkey.Key, opts ...LockOption) TxOption {
	return txOption(func(t *attempt.Call) error {
		request, err := newRequest([]lockkey.Key{key}, opts)
		if err != nil {
			return err
		}
		t.Locks = append(t.Locks, request)
		return nil
	})
}

// Attempts runs the whole transaction up to n times, as long as its error is a conflict that another run can cure
// ([IsRetryable]). It does not repeat a lock that was not granted in time, or that [Try] found taken. The pauses between
// runs are random and grow, up to two seconds or a hundred times the length of a run, so that many writers of one row
// spread out. Default: once.
func Attempts(n int) TxOption {
	return txOption(func(t *attempt.Call) error {
		if n < 1 {
			return fmt.Errorf("%w: Attempts(%d) must be at least 1", fault.ErrOption, n)
		}
		t.Attempts = n
		return nil
	})
}

// RetryIf decides, in place of [IsRetryable], which errors [Attempts] repeats. For example, to repeat timeouts of locks too:
//
//	gormlock.RetryIf(func(err error) bool { return gormlock.IsRetryable(err) || errors.Is(err, gormlock.ErrLockTimeout) })
//
// Default: IsRetryable.
func RetryIf(curable func(error) bool) TxOption {
	return txOption(func(t *attempt.Call) error {
		if curable == nil {
			return fmt.Errorf("%w: RetryIf(nil)", ErrOption)
		}
		t.RetryIf = curable
		return nil
	})
}

// Within bounds the whole call: all attempts, the pauses between them, waits for locks, and running statements. When the time is over,
// the error is context.DeadlineExceeded with the error of the last attempt. Cutting off a statement closes its connection.
// So inside another transaction, that transaction is lost too. Default: only the context bounds the call.
func Within(d time.Duration) TxOption {
	return txOption(func(t *attempt.Call) error {
		if d <= 0 {
			return fmt.Errorf("%w: Within(%s) leaves no time", ErrOption, d)
		}
		t.Within = d
		return nil
	})
}

// OnRetry calls told before each run except the first, with the number of the run that failed, counted from 1, and its
// error. Default: no call.
func OnRetry(told func(attempt int, err error)) TxOption {
	return txOption(func(t *attempt.Call) error {
		if told == nil {
			return fmt.Errorf("%w: OnRetry(nil)", fault.ErrOption)
		}
		t.OnRetry = told
		return nil
	})
}

// ReadOnly begins a read-only transaction. Default: read and write.
func ReadOnly() TxOption {
	return txOption(func(t *attempt.Call) error {
		t.Options.ReadOnly = true
		return nil
	})
}

// Isolation begins the transaction at this level. Default: the database's.
func Isolation(level sql.IsolationLevel) TxOption {
	return txOption(func(t *attempt.Call) error {
		t.Options.Isolation = level
		return nil
	})
}

// Transaction runs fn in a transaction, which is committed if fn returns nil and rolled back if it returns an error or
// panics. It is db.Transaction with what concurrent writers need:
//
//	err := gormlock.Transaction(db.WithContext(ctx), func(tx *gorm.DB) error { … },
//		gormlock.Locking(key, gormlock.Timeout(time.Second)), gormlock.Attempts(20))
//
// fn may run several times with [Attempts]: what it does outside of the transaction must be repeatable, and it must
// read inside the transaction what its decisions depend on. Attempts counts the runs of this call only.
//
// Inside of another transaction it sets a savepoint. Locks are taken after the savepoint, and freed if fn is rolled back.
// fn is not run again there, because only the outer transaction can be repeated as a whole. [Isolation] and [ReadOnly] are
// an error, because the outer transaction has begun.
func Transaction(db *gorm.DB, fn func(tx *gorm.DB) error, opts ...TxOption) error {
	if err := install.Usable(db); err != nil {
		return err
	}
	if fn == nil {
		return fmt.Errorf("%w: a nil function", fault.ErrOption)
	}
	t := &attempt.Call{RetryIf: IsRetryable}
	for _, o := range opts {
		if o == nil {
			return fmt.Errorf("%w: a nil option", fault.ErrOption)
		}
		if err := o.apply(t); err != nil {
			return err
		}
	}
	return fault.Caused(db, t.Run(db, fn))
}
