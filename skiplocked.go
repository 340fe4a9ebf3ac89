package gormlock

import (
	"fmt"

	"gorm.io/gorm"
)

// WithSkipLocked is a scope that locks the rows a query reads and leaves out those that another transaction has locked:
// FOR UPDATE SKIP LOCKED. It never waits for a row.
//
//	gormlock.Transaction(db, func(tx *gorm.DB) error {
//		var jobs []Job
//		err := tx.Scopes(gormlock.WithSkipLocked()).Where("state = ?", "ready").Order("id").Limit(10).Find(&jobs).Error
//		… // the jobs are ours until the transaction ends
//	})
//
// A locked row looks as if it were not there: First answers gorm.ErrRecordNotFound, and a sum over the rest is no sum
// of the table. For work to be handed out that is what is wanted, for anything else use [WithRowLock].
//
// All that [WithRowLock] says holds here too. To lock other than FOR UPDATE give the strength as an option.
func WithSkipLocked(opts ...RowLockOption) func(*gorm.DB) *gorm.DB {
	return SkipLocked(opts...).scope
}

// SkipLocked is [WithSkipLocked] as a clause, for db.Clauses and gorm.G.
func SkipLocked(opts ...RowLockOption) RowLockClause {
	return newRowLock(append([]RowLockOption{Skip()}, opts...))
}

// RowLockOption changes how rows are locked: [Try], [Timeout], [Skip], [Of], [Preloaded], and for the calls that name
// no strength of their own a [Strength]. The set is closed; an option holds no state.
type RowLockOption interface {
	applyRowLock(*RowLockClause) error
}

type rowLockOption func(*RowLockClause) error

func (o rowLockOption) applyRowLock(l *RowLockClause) error { return o(l) }

// Skip leaves out rows that another transaction has locked: SKIP LOCKED. Default: wait for them.
func Skip() RowLockOption {
	return rowLockOption(func(l *RowLockClause) error {
		l.skip = true
		return nil
	})
}

// Of locks the rows of these tables of the query only, each named as the query names it: by its alias if it has one, a
// table that Joins joins by the name of the association. Default: all tables of the query; with joins the model's own.
func Of(tables ...string) RowLockOption {
	return rowLockOption(func(l *RowLockClause) error {
		if len(tables) == 0 {
			return fmt.Errorf("%w: Of() names no table", ErrOption)
		}
		l.of = append(append([]string(nil), l.of...), tables...)
		return nil
	})
}

// Preloaded locks the rows that Preload loads too, as strongly. They are never left out, for a child left out looks
// like a child deleted: where the query skips locked rows, Preload waits. The rows of a many-to-many join table are
// read without a lock. Default: Preload reads without locks.
func Preloaded() RowLockOption {
	return rowLockOption(func(l *RowLockClause) error {
		l.preloaded = true
		return nil
	})
}

// applyRowLock makes Try NOWAIT and Timeout a lock_timeout.
func (o WaitOption) applyRowLock(l *RowLockClause) error {
	if o.try {
		l.try = true
		return nil
	}
	l.timeout = o.timeout
	return checkWait(o)
}
