package rowlock

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/statement"
)

// Lock is the FOR clause of a query that locks rows.
type Lock struct {
	Strength  Strength
	Try, Skip bool
	Timeout   time.Duration
	Of        []string
	Preloaded bool
	Err       error     // an error in the options, returned when the lock is used
	Began     time.Time // when the query began, if there is an observer
}

// Complete sets the default strength and refuses options that exclude each other.
func (l Lock) Complete() Lock {
	if l.Strength == 0 {
		l.Strength = forUpdate
	}
	if l.Err != nil {
		return l
	}
	switch {
	case l.Try && l.Skip:
		l.Err = fmt.Errorf("%w: Try fails at a locked row and Skip leaves it out: use one of them", fault.ErrOption)
	case l.Try && l.Timeout > 0:
		l.Err = fmt.Errorf("%w: Try does not wait, so Timeout(%s) means nothing: use one of them", fault.ErrOption, l.Timeout)
	case l.Skip && l.Timeout > 0:
		l.Err = fmt.Errorf("%w: Skip does not wait for rows, so Timeout(%s) means nothing: use one of them", fault.ErrOption, l.Timeout)
	}
	return l
}

// AddTo is a scope that puts the lock on a query.
func (l Lock) AddTo(db *gorm.DB) *gorm.DB { return mark.Give(db, l) }

// Name implements [clause.Interface]. It is the name of GORM's own locking clause, so code that looks for one finds
// it.
func (Lock) Name() string { return "FOR" }

// MergeClause implements [clause.Interface].
func (l Lock) MergeClause(c *clause.Clause) { c.Expression = l }

// errAssociationOperation is the error of a row lock that GORM would drop for some relations.
var errAssociationOperation = errors.New("gormlock: a row lock does not reach the rows of an association that gorm.G sets: lock them with a query before it")

// ModifyStatement implements [gorm.StatementModifier].
func (l Lock) ModifyStatement(stmt *gorm.Statement) {
	if err := l.refusal(stmt); err != nil {
		mark.Fail(stmt, err)
		return
	}
	if statement.InAssociationOperation() {
		mark.Fail(stmt, errAssociationOperation)
		return
	}
	l.put(stmt)
	mark.Put(stmt, rowsLockedHere{l})
}

// PutLast puts the lock on a query that gormlock makes, after its scopes have run. It needs no mark, because nobody uses the conditions of such a
// query in another one.
func (l Lock) PutLast(stmt *gorm.Statement) {
	if err := l.refusal(stmt); err != nil {
		fault.Add(stmt.DB, err)
		return
	}
	l.put(stmt)
}

// refusal is why the statement cannot have the lock.
func (l Lock) refusal(stmt *gorm.Statement) error {
	there := stmt.Clauses[l.Name()].Expression
	switch {
	case l.Err != nil:
		return l.Err
	case l.Strength == 0:
		return fmt.Errorf("%w: a row lock without a strength, such as ForUpdate", fault.ErrOption)
	case install.Of(stmt.DB) == nil:
		return fault.ErrNotInstalled
	case there != nil && !reflect.DeepEqual(there, l):
		return fmt.Errorf("gormlock: a query can have one row lock, and this one already has %s", forClause(there))
	}
	return nil
}

func (l Lock) put(stmt *gorm.Statement) {
	stmt.Clauses[l.Name()] = clause.Clause{Name: l.keyword(stmt), Expression: l, Builder: behindComment}
}

// Build implements [clause.Expression].
func (l Lock) Build(builder clause.Builder) {
	stmt, ok := builder.(*gorm.Statement)
	if ok && dialect.Of(stmt.DB).IsMySQL() {
		l.buildMySQL(stmt)
		return
	}
	statement.Write(builder, l.Strength.SQL())
	tables := l.Of
	if ok {
		tables = l.tables(stmt)
	}
	for i, table := range tables {
		before := ","
		if i == 0 {
			before = " OF "
		}
		statement.Write(builder, before, statement.QuoteName(table))
	}
	switch {
	case l.Skip:
		statement.Write(builder, " SKIP LOCKED")
	case l.Try:
		statement.Write(builder, " NOWAIT")
	}
}

// On is the statement's row lock, if it is a Lock.
func On(stmt *gorm.Statement) (Lock, bool) {
	c, ok := stmt.Clauses["FOR"]
	if !ok {
		return Lock{}, false
	}
	l, ok := c.Expression.(Lock)
	return l, ok
}

func forClause(e clause.Expression) string {
	var text strings.Builder
	switch e := e.(type) {
	case Lock:
		text.WriteString(e.Strength.String())
		if len(e.Of) > 0 {
			text.WriteString(" OF " + strings.Join(e.Of, ", "))
		}
	case clause.Locking:
		text.WriteString("FOR " + e.Strength)
	default:
		text.WriteString("another")
	}
	return text.String()
}

// Clause is a lock for callers, with its fields hidden.
type Clause struct{ lock Lock }

// NewClause makes the clause of a lock.
func NewClause(l Lock) Clause { return Clause{l} }

// Name implements [clause.Interface].
func (c Clause) Name() string { return c.lock.Name() }

// Build implements [clause.Expression].
func (c Clause) Build(builder clause.Builder) { c.lock.Build(builder) }

// MergeClause implements [clause.Interface].
func (c Clause) MergeClause(to *clause.Clause) { c.lock.MergeClause(to) }

// ModifyStatement implements [gorm.StatementModifier].
func (c Clause) ModifyStatement(stmt *gorm.Statement) { c.lock.ModifyStatement(stmt) }
