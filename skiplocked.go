package gormlock

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/rowlock"
	"github.com/gormlock/gormlock/lockkey"
)

// Strength is how strongly rows are locked. Which locks two transactions can hold on one row at the same time:
//
//	ForKeyShare     with ForKeyShare, ForShare, ForNoKeyUpdate
//	ForShare        with ForKeyShare, ForShare
//	ForNoKeyUpdate  with ForKeyShare
//	ForUpdate       with nothing
//
// Plain reads wait for none of them. An UPDATE takes FOR NO KEY UPDATE, or FOR UPDATE if it changes a key that others
// may refer to; a DELETE takes FOR UPDATE. The insert of a row with a foreign key takes FOR KEY SHARE of its parent: it
// waits for ForUpdate and not for ForNoKeyUpdate.
type Strength uint8

// The strengths, strongest first.
const (
	ForUpdate      Strength = iota + 1 // nobody else locks, changes, deletes or refers to the row
	ForNoKeyUpdate                     // as an UPDATE locks: rows that refer to it can be inserted
	ForShare                           // nobody changes or deletes the row, others may hold it shared too
	ForKeyShare                        // nobody deletes the row or changes its key
)

// String is the SQL: FOR UPDATE.
func (s Strength) String() string { return rowlock.Strength(s).String() }

func (s Strength) applyRowLock(l *rowlock.Lock) error { return l.SetStrength(rowlock.Strength(s)) }

// WithRowLock is a scope that locks the rows a query reads until the transaction ends.
//
//	tx.Scopes(gormlock.WithRowLock(gormlock.ForNoKeyUpdate, gormlock.Timeout(time.Second))).First(&acct, 1)
//
// It waits for rows that another transaction has locked. With [Timeout] it waits no longer than that
// ([ErrLockTimeout]), with [Try] not at all ([ErrNotAcquired]), and with [Skip] it leaves these rows out. After
// ErrLockTimeout and ErrNotAcquired the transaction is as usable as before, and the query has left no new lock on a
// row. A Timeout bounds the wait for each row, not their sum; it and Try cost two round trips, for a savepoint around it.
//
// Outside of a transaction the locks would end with the statement: the error is [ErrNoTransaction], and nothing is executed.
// It is also an error if PostgreSQL does not lock the rows of the query: for Count, DISTINCT, GROUP BY, aggregates, the outer side
// of a join, or if FROM has a function, VALUES, a WITH query or a view that computes its rows. And it is an error if the statement cannot have a
// row lock: create, update, delete, raw SQL. FirstOrCreate can. If another process replaces a table by such a view, the error comes up to a minute late.
//
// At READ COMMITTED a query that waited returns rows as they are after the wait. It leaves out rows whose own columns no longer match,
// so it may return fewer than its LIMIT. They are in the order from before the wait. At REPEATABLE READ a row that was
// changed meanwhile is an error for which [IsRetryable] is true.
//
// Rows that Preload reads are not locked, see [Preloaded]. On a sub-query, the outer statement locks the rows, in its own
// transaction; Try and Timeout are an error there, and [DefaultTimeout] does not apply. On a group of conditions, or the
// conditions of a joined association, a row lock is [ErrSubQuery]. A raw sub-query drops it silently, because GORM copies
// its text without asking a plugin: write FOR UPDATE into the text.
//
// gorm.G drops the scopes of the db it is given before any plugin sees them: give it the clause, [RowLock].
func WithRowLock(strength Strength, opts ...RowLockOption) func(*gorm.DB) *gorm.DB {
	return newRowLock(append([]RowLockOption{strength}, opts...)).AddTo
}

// RowLock is [WithRowLock] as a clause, for db.Clauses and gorm.G.
func RowLock(strength Strength, opts ...RowLockOption) RowLockClause {
	return RowLockClause{rowlock.NewClause(newRowLock(append([]RowLockOption{strength}, opts...)))}
}

// RowLockClause is the FOR clause of a query that locks rows: what [RowLock] and [SkipLocked] return. One value serves
// any number of queries, in db.Clauses, in gorm.G and, as its method value ModifyStatement, in the Scopes of gorm.G.
type RowLockClause struct{ rowLockClause }

type rowLockClause = rowlock.Clause

// newRowLock is the lock that options describe.
func newRowLock(opts []RowLockOption) rowlock.Lock {
	var l rowlock.Lock
	for _, o := range opts {
		if o == nil {
			l.Err = fmt.Errorf("%w: a nil option", ErrOption)
		} else {
			l.Err = o.applyRowLock(&l)
		}
		if l.Err != nil {
			break
		}
	}
	return l.Complete()
}

// WithSkipLocked is a scope that locks the rows a query reads and leaves out those that another transaction has locked:
// FOR UPDATE SKIP LOCKED. It never waits for a row. Constants of its conditions are written into the text, as [Claim] does.
//
//	gormlock.Transaction(db, func(tx *gorm.DB) error {
//		var jobs []Job
//		err := tx.Scopes(gormlock.WithSkipLocked()).Where("state = ?", "ready").Order("id").Limit(10).Find(&jobs).Error
//		… // the jobs are ours until the transaction ends
//	})
//
// A locked row looks as if it did not exist: First returns gorm.ErrRecordNotFound, and a sum leaves the row out. That is
// right for handing out jobs. For anything else use [WithRowLock].
//
// The rest is as in [WithRowLock]. To lock with a strength other than FOR UPDATE, give the strength as an option.
func WithSkipLocked(opts ...RowLockOption) func(*gorm.DB) *gorm.DB {
	return newRowLock(append([]RowLockOption{Skip()}, opts...)).AddTo
}

// SkipLocked is [WithSkipLocked] as a clause, for db.Clauses and gorm.G.
func SkipLocked(opts ...RowLockOption) RowLockClause {
	return RowLockClause{rowlock.NewClause(newRowLock(append([]RowLockOption{Skip()}, opts...)))}
}

// RowLockOption changes how rows are locked: [Try], [Timeout], [Skip], [Of], [Preloaded], and for the calls that name
// no strength of their own a [Strength]. The set is closed; an option holds no state.
type RowLockOption interface {
	applyRowLock(*rowlock.Lock) error
}

type rowLockOption func(*rowlock.Lock) error

func (o rowLockOption) applyRowLock(l *rowlock.Lock) error { return o(l) }

// Skip leaves out rows that another transaction has locked: SKIP LOCKED. Default: wait for them.
func Skip() RowLockOption {
	return rowLockOption(func(l *rowlock.Lock) error {
		l.Skip = true
		return nil
	})
}

// Of locks only the rows of these tables of the query. Name each table as the query does: by its alias if it has one, and a
// joined association by its name. Default: all tables of the query; with joins only the model's own.
func Of(tables ...string) RowLockOption {
	return rowLockOption(func(l *rowlock.Lock) error {
		if len(tables) == 0 {
			return fmt.Errorf("%w: Of() names no table", fault.ErrOption)
		}
		l.Of = append(append([]string(nil), l.Of...), tables...)
		return nil
	})
}

// Preloaded also locks the rows that Preload loads, with the same strength. It never skips them, because a skipped child
// looks like a deleted one: if the query skips locked rows, Preload waits. If the lock of a child is refused, the rows that were read before it
// stay locked. The rows of a many-to-many join table are read without a lock. Default: Preload reads without locks.
func Preloaded() RowLockOption {
	return rowLockOption(func(l *rowlock.Lock) error {
		l.Preloaded = true
		return nil
	})
}

// applyRowLock makes Try a NOWAIT and Timeout a lock_timeout. A timeout has the same limits as for advisory locks.
func (o WaitOption) applyRowLock(l *rowlock.Lock) error {
	if o.try {
		l.Try = true
		return nil
	}
	l.Timeout = o.timeout
	_, err := newRequest([]lockkey.Key{lockkey.Int64(0)}, []LockOption{o})
	return err
}
