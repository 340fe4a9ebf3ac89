package statement

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/sqltext"
)

// SQL writes into the text of a statement.
type SQL struct{ *gorm.Statement }

// Text writes pieces of SQL as they are.
func (s SQL) Text(pieces ...string) {
	for _, piece := range pieces {
		_, _ = s.SQL.WriteString(piece)
	}
}

// Write is [SQL.Text] for the builder of a clause, which need not be a statement.
func Write(to clause.Writer, pieces ...string) {
	for _, piece := range pieces {
		_, _ = to.WriteString(piece) // writing to memory cannot fail
	}
}

// Value writes a placeholder for a value that is sent as it is.
func (s SQL) Value(value any) {
	s.Vars = append(s.Vars, value)
	s.BindVarTo(s.Statement, s.Statement, value)
}

// Expression writes a value as GORM does: a placeholder, a sub-query, or the text of an expression.
func (s SQL) Expression(value any) {
	if IsScalar(value) {
		s.Value(value)
	} else {
		s.AddVar(s.Statement, value)
		EndComment(s.Statement)
	}
}

// IsScalar reports whether GORM writes just a placeholder for a value. It is a shortcut: GORM would check many kinds of
// values first.
func IsScalar(value any) bool {
	switch value.(type) {
	case int, int64, int32, uint, uint64, uint32, string, bool, float64:
		return true
	}
	return false
}

// IsClosed reports whether the text from start on closes no parenthesis that it did not open.
func (s SQL) IsClosed(start int) bool {
	part := s.SQL.String()[start:]
	if dialect.Of(s.DB).IsMySQL() {
		return sqltext.IsClosedOnMySQL(part)
	}
	return sqltext.IsClosed(part)
}

// Column writes a column's name in the dialect's quotes, after the table's name if there is one.
func (s SQL) Column(table, name string) {
	s.QuoteTo(s.Statement, clause.Column{Table: table, Name: name})
}
