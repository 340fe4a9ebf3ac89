package gormlock

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/lockkey"
)

// Strength is how strongly rows are locked. What two transactions can hold of one row together:
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
func (s Strength) String() string {
	if s < ForUpdate || s > ForKeyShare {
		return fmt.Sprintf("Strength(%d)", uint8(s))
	}
	return "FOR " + s.sql()
}

func (s Strength) sql() string {
	return [...]string{"", "UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE"}[s]
}

func (s Strength) applyRowLock(l *RowLockClause) error {
	if s < ForUpdate || s > ForKeyShare {
		return fmt.Errorf("%w: %v is no strength of a row lock", ErrOption, s)
	}
	if l.strength != 0 && l.strength != s {
		return fmt.Errorf("%w: one row lock has one strength, %v or %v", ErrOption, l.strength, s)
	}
	l.strength = s
	return nil
}

// WithRowLock is a scope that locks the rows a query reads until the transaction ends.
//
//	tx.Scopes(gormlock.WithRowLock(gormlock.ForNoKeyUpdate, gormlock.Timeout(time.Second))).First(&acct, 1)
//
// It waits for rows that another transaction has locked: without end, up to [Timeout] ([ErrLockTimeout]), not at all
// with [Try] ([ErrNotAcquired]), and with [Skip] it leaves them out. After ErrLockTimeout and ErrNotAcquired the
// transaction is as usable as before, and no row of this query is locked more than before. A Timeout bounds the wait
// for each row, not their sum; it and Try cost two round trips, for the savepoint around the query.
//
// Outside of a transaction the locks would be gone with the statement: that is [ErrNoTransaction] and nothing is
// executed. So are queries refused that PostgreSQL could not lock the rows of (Count, DISTINCT, GROUP BY, aggregates,
// the outer side of a join), and statements that take no row lock: update, delete, raw SQL.
//
// At READ COMMITTED a query that waited sees the rows as they are after the wait, and leaves out those that no longer
// match, so that it may return fewer than its LIMIT; their order is that of before the wait. At REPEATABLE READ a row
// that was changed meanwhile is an error that [IsRetryable] knows.
//
// What Preload reads is not locked, see [Preloaded]. In a sub-query the rows are locked by the statement around it, for
// the transaction that it runs in; Try and Timeout are an error there, and [DefaultTimeout] does not reach it. On a
// group of conditions, or the conditions of a joined association, a row lock is [ErrSubQuery]. A raw sub-query, whose text
// GORM copies without asking anybody, drops it silently: write FOR UPDATE into the text.
//
// gorm.G drops the scopes of the db it is given, before any plugin sees them: give it the clause, [RowLock].
func WithRowLock(strength Strength, opts ...RowLockOption) func(*gorm.DB) *gorm.DB {
	return RowLock(strength, opts...).scope
}

// RowLock is [WithRowLock] as a clause, for db.Clauses and gorm.G.
func RowLock(strength Strength, opts ...RowLockOption) RowLockClause {
	return newRowLock(append([]RowLockOption{strength}, opts...))
}

// RowLockClause is the FOR clause of a query that locks rows: what [RowLock] and [SkipLocked] return. One value serves
// any number of queries, in db.Clauses, in gorm.G and, as its method value ModifyStatement, in the Scopes of gorm.G.
type RowLockClause struct {
	strength  Strength
	try, skip bool
	timeout   time.Duration
	of        []string
	preloaded bool
	err       error     // what was wrong with the options, reported on use
	began     time.Time // when the query began, if somebody is to be told
}

func newRowLock(opts []RowLockOption) RowLockClause {
	var l RowLockClause
	for _, o := range opts {
		if o == nil {
			l.err = fmt.Errorf("%w: nil", ErrOption)
		} else {
			l.err = o.applyRowLock(&l)
		}
		if l.err != nil {
			break
		}
	}
	return l.complete()
}

// complete sets the default strength and refuses options that exclude each other.
func (l RowLockClause) complete() RowLockClause {
	if l.strength == 0 {
		l.strength = ForUpdate
	}
	if l.err != nil {
		return l
	}
	switch {
	case l.try && l.skip:
		l.err = fmt.Errorf("%w: Try fails at a locked row and Skip leaves it out, a query does one of them", ErrOption)
	case l.try && l.timeout > 0:
		l.err = fmt.Errorf("%w: Try does not wait, so Timeout(%s) means nothing", ErrOption, l.timeout)
	case l.skip && l.timeout > 0:
		l.err = fmt.Errorf("%w: Skip does not wait for rows, so Timeout(%s) means nothing", ErrOption, l.timeout)
	}
	return l
}

func (l RowLockClause) scope(db *gorm.DB) *gorm.DB { return db.Clauses(l) }

// Name implements [clause.Interface]. It is that of GORM's own clause: who looks for a locking query finds one.
func (RowLockClause) Name() string { return "FOR" }

// MergeClause implements [clause.Interface].
func (l RowLockClause) MergeClause(c *clause.Clause) { c.Expression = l }

// ModifyStatement implements [gorm.StatementModifier].
func (l RowLockClause) ModifyStatement(stmt *gorm.Statement) {
	there := stmt.Clauses[l.Name()].Expression
	switch {
	case l.err != nil:
		fail(stmt.DB, l.err)
	case l.strength == 0:
		fail(stmt.DB, fmt.Errorf("%w: a row lock without strength", ErrOption))
	case pluginOf(stmt.DB) == nil:
		fail(stmt.DB, ErrNotInstalled)
	case there != nil && !reflect.DeepEqual(there, l):
		fail(stmt.DB, fmt.Errorf("gormlock: one query has one row lock, this one has %s already", forClause(there)))
	default:
		stmt.Clauses[l.Name()] = clause.Clause{Name: l.Name(), Expression: l}
		markConditions(stmt, rowsLockedHere{l})
	}
}

// Build implements [clause.Expression].
func (l RowLockClause) Build(builder clause.Builder) {
	_, _ = builder.WriteString(l.strength.sql())
	tables := l.of
	if stmt, ok := builder.(*gorm.Statement); ok && len(tables) == 0 && joined(stmt) && stmt.Table != "" {
		tables = []string{ownName(stmt)}
	}
	for i, table := range tables {
		if i == 0 {
			_, _ = builder.WriteString(" OF ")
		} else {
			_ = builder.WriteByte(',')
		}
		_, _ = builder.WriteString(quoteName(table))
	}
	switch {
	case l.skip:
		_, _ = builder.WriteString(" SKIP LOCKED")
	case l.try:
		_, _ = builder.WriteString(" NOWAIT")
	}
}

// rowLockOf is the statement's row lock, if it is one of ours.
func rowLockOf(stmt *gorm.Statement) (RowLockClause, bool) {
	c, ok := stmt.Clauses["FOR"]
	if !ok {
		return RowLockClause{}, false
	}
	l, ok := c.Expression.(RowLockClause)
	return l, ok
}

// checkWait holds a wait to the limits that it has for advisory locks.
func checkWait(o WaitOption) error {
	_, err := advisory.NewRequest([]lockkey.Key{lockkey.Int64(0)}, o)
	return err
}

func forClause(e clause.Expression) string {
	var text strings.Builder
	switch e := e.(type) {
	case RowLockClause:
		text.WriteString(e.strength.String())
		if len(e.of) > 0 {
			text.WriteString(" OF " + strings.Join(e.of, ", "))
		}
	case clause.Locking:
		text.WriteString("FOR " + e.Strength)
	default:
		text.WriteString("another")
	}
	return text.String()
}

// quoteName is one identifier, whatever is in it.
func quoteName(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}
