package statement

import (
	"context"
	"database/sql"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// sending stands in the place of a statement's transaction while GORM executes a query, and notes whether a text was sent that does what it
// must. Callbacks of others may change what GORM builds, or answer the query themselves.
type sending struct {
	gorm.ConnPool
	gorm.TxCommitter
	does func(text string) bool
	sent bool
}

// QueryContext notes the text.
func (s *sending) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	s.sent = s.sent || s.does(text)
	return s.ConnPool.QueryContext(ctx, text, args...)
}

// QueryRowContext notes the text.
func (s *sending) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	s.sent = s.sent || s.does(text)
	return s.ConnPool.QueryRowContext(ctx, text, args...)
}

// Build makes it fit into the statement's clauses, where it is found again. It writes nothing.
func (*sending) Build(clause.Builder) {}

const sendingClause = "gormlock:sending"

// NoteSending lets the query of the statement note whether a text is sent that does what it must.
func NoteSending(stmt *gorm.Statement, does func(text string) bool) {
	tx, _ := stmt.ConnPool.(gorm.TxCommitter)
	s := &sending{ConnPool: stmt.ConnPool, TxCommitter: tx, does: does}
	stmt.ConnPool = s
	stmt.Clauses[sendingClause] = clause.Clause{Expression: s}
}

// WasSent gives the statement its pool back, and reports whether such a text was sent, or none had to be.
func WasSent(stmt *gorm.Statement) bool {
	s, noted := stmt.Clauses[sendingClause].Expression.(*sending)
	if !noted {
		return true
	}
	delete(stmt.Clauses, sendingClause)
	ColumnsNoted(stmt) // by a query that panicked
	if stmt.ConnPool == gorm.ConnPool(s) {
		stmt.ConnPool = s.ConnPool
	}
	return s.sent
}

// EndComment begins a new line where a comment at the end of the text would swallow what follows.
func EndComment(stmt *gorm.Statement) {
	if text := stmt.SQL.String(); strings.Contains(text, "--") || strings.Contains(text, "#") { // as MariaDB's may begin
		_ = stmt.WriteByte('\n')
	}
}
