package gormlock

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
)

// TxOption changes what [Transaction] begins and how often it tries.
type TxOption interface {
	apply(*transaction) error
}

type txOption func(*transaction) error

func (o txOption) apply(t *transaction) error { return o(t) }

// Locking begins the transaction with the advisory lock held. Any number of them, and the BEGIN, are one round trip. At
// REPEATABLE READ and above the lock is held before the snapshot is taken; where gormlock cannot do that, because db runs
// on one connection (db.Connection) or with [PlainTransactions], it is [ErrSnapshotTaken]. Default: no lock.
func Locking(key lockkey.Key, opts ...LockOption) TxOption {
	return txOption(func(t *transaction) error {
		request, err := newRequest([]lockkey.Key{key}, opts)
		if err != nil {
			return err
		}
		t.locks = append(t.locks, request)
		return nil
	})
}

// Attempts runs the whole transaction up to n times while [IsRetryable] says that another run can cure its error. The
// pauses between runs are random and grow, to a hundred times what a run takes or two seconds, so that many writers of
// one row spread out instead of meeting again. Default: once.
func Attempts(n int) TxOption {
	return txOption(func(t *transaction) error {
		if n < 1 {
			return fmt.Errorf("%w: Attempts(%d), one is the least", ErrOption, n)
		}
		t.attempts = n
		return nil
	})
}

// OnRetry is called before each run but the first, with the number of the run that failed, counted from 1, and its
// error. Default: nobody is told.
func OnRetry(told func(attempt int, err error)) TxOption {
	return txOption(func(t *transaction) error {
		if told == nil {
			return fmt.Errorf("%w: OnRetry(nil)", ErrOption)
		}
		t.onRetry = told
		return nil
	})
}

// ReadOnly begins a read-only transaction. Default: read and write.
func ReadOnly() TxOption {
	return txOption(func(t *transaction) error {
		t.options.ReadOnly = true
		return nil
	})
}

// Isolation begins the transaction at this level. Default: the database's.
func Isolation(level sql.IsolationLevel) TxOption {
	return txOption(func(t *transaction) error {
		t.options.Isolation = level
		return nil
	})
}

// Transaction runs fn in a transaction, which is committed if fn returns nil and rolled back if it returns an error or
// panics. It is db.Transaction with what concurrent writers need:
//
//	err := gormlock.Transaction(db.WithContext(ctx), func(tx *gorm.DB) error { … },
//		gormlock.Locking(key, gormlock.Timeout(time.Second)), gormlock.Attempts(20))
//
// fn may run several times with [Attempts]: it must do nothing outside of the transaction that cannot be repeated, and
// read what it decides on inside. The number of runs belongs to this call.
//
// Inside of another transaction it is a savepoint of that one: locks are taken at its start and freed if it is rolled
// back. It is not run again there, since only the outer transaction can be repeated as a whole; and an [Isolation] or
// [ReadOnly] is an error, since the outer transaction has begun.
func Transaction(db *gorm.DB, fn func(tx *gorm.DB) error, opts ...TxOption) error {
	if err := usable(db); err != nil {
		return err
	}
	if fn == nil {
		return fmt.Errorf("%w: a nil function", ErrOption)
	}
	t := &transaction{attempts: 1}
	for _, o := range opts {
		if o == nil {
			return fmt.Errorf("%w: nil", ErrOption)
		}
		if err := o.apply(t); err != nil {
			return err
		}
	}
	if len(t.locks) > 0 {
		t.request = t.locks[0].And(t.locks[1:]...)
		t.request = t.request.Within(pluginOf(db).defaultTimeout)
		if !isPostgres(db) {
			return fmt.Errorf("%w, not %s: lock %s", ErrNotPostgres, db.Name(), t.request)
		}
	}
	if transactionOf(db.Statement) != nil {
		return t.nested(db, fn)
	}
	return t.retry(db, fn)
}

type transaction struct {
	locks    []*advisory.Request // what each Locking asks for
	request  *advisory.Request   // all of them, nil: no locks
	options  sql.TxOptions
	attempts int
	onRetry  func(attempt int, err error)
}

// nested runs fn under a savepoint.
func (t *transaction) nested(db *gorm.DB, fn func(tx *gorm.DB) error) error {
	if t.options != (sql.TxOptions{}) {
		return fmt.Errorf("%w: Isolation and ReadOnly cannot change the transaction that is open already", ErrOption)
	}
	return db.Transaction(func(tx *gorm.DB) error {
		failed := true                    // or fn panicked
		if !tx.DisableNestedTransaction { // there is a savepoint
			end := journalOf(tx.Statement).part()
			defer func() { end(failed) }()
		}
		if t.request != nil && !tx.DryRun {
			if err := acquire(tx, t.request); err != nil {
				return err
			}
		}
		err := within(tx, fn)
		failed = err != nil
		return err
	})
}

// within runs fn, and fails where a write in it was stale: the caller of fn may not know.
func within(tx *gorm.DB, fn func(tx *gorm.DB) error) (err error) {
	leave := journalOf(tx.Statement).enter()
	defer func() {
		if stale := leave(); err == nil {
			err = stale
		}
	}()
	return fn(tx)
}

func (t *transaction) retry(db *gorm.DB, fn func(tx *gorm.DB) error) error {
	ctx := db.Statement.Context
	for attempt := 1; ; attempt++ {
		began := time.Now()
		err := t.once(db, fn)
		switch {
		case err == nil || !IsRetryable(err) || t.attempts == 1:
			return err
		case attempt == t.attempts:
			return fmt.Errorf("gormlock: gave up after %d attempts: %w", attempt, because(err))
		}
		if ended := pause(ctx, attempt, time.Since(began)); ended != nil {
			return fmt.Errorf("gormlock: %w after %d attempts: %w", ended, attempt, because(err))
		}
		pluginOf(db).tell(ctx, observe.Event{Kind: observe.Retried, Err: err})
		if t.onRetry != nil {
			t.onRetry(attempt, err)
		}
	}
}

// pause waits a random time, on average longer with every attempt and in proportion to what a run takes: rivals meet
// again as often as their runs fill the time over which they are spread.
func pause(ctx context.Context, attempt int, took time.Duration) error {
	const longest = 2 * time.Second
	bound := min(max(took, time.Millisecond)<<min(attempt, 7), longest)
	timer := time.NewTimer(rand.N(bound))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// once begins, runs fn and ends the transaction, whatever fn does.
func (t *transaction) once(db *gorm.DB, fn func(tx *gorm.DB) error) (err error) {
	tx := t.begin(db)
	if tx.Error != nil {
		return tx.Error
	}
	own := t.watch(tx)
	open := true
	defer func() {
		if open { // fn failed, panicked or ended the goroutine: its own error counts
			tx.Rollback()
			own.end(false)
		}
	}()
	if t.request != nil && !tx.DryRun && !begunWith(tx, t.request) {
		if err := acquire(tx, t.request); err != nil {
			return err
		}
	}
	if err := within(tx, fn); err != nil {
		return err
	}
	open = false
	err = tx.Commit().Error
	own.end(err == nil)
	return err
}

// begin hands the locks to the pool by the address of the options, the one thing that GORM passes through untouched.
func (t *transaction) begin(db *gorm.DB) *gorm.DB {
	if t.request != nil && !db.DryRun {
		openings.Store(&t.options, t.request)
		defer openings.Delete(&t.options)
	}
	return db.Begin(&t.options)
}

// openings holds the locks of transactions that Transaction is beginning, by *sql.TxOptions.
var openings sync.Map

// begunWith reports whether the locks travelled with the BEGIN.
func begunWith(tx *gorm.DB, request *advisory.Request) bool {
	j := journalOf(tx.Statement)
	return j != nil && j.begunWith == request
}

// watch gives the transaction a journal if the pool it began on gives none: Transaction sees its own end.
func (t *transaction) watch(tx *gorm.DB) ownJournal {
	plain, ok := transactionOf(tx.Statement).(*sql.Tx)
	if !ok || journalOf(tx.Statement) != nil {
		return ownJournal{}
	}
	j := &journal{deaf: true}
	j.of(plain)
	return ownJournal{j}
}

// ownJournal is a journal that Transaction itself keeps; the zero value stands for one that the pool keeps.
type ownJournal struct{ *journal }

func (o ownJournal) end(committed bool) {
	if o.journal != nil {
		o.Ended(committed)
	}
}
