package statement

import (
	"context"
	"database/sql"
	"strings"

	"gorm.io/gorm"
)

// sending stands in the place of a statement's transaction while GORM executes a query, and notes whether a text was sent that has what it
// must. Callbacks of others may change what GORM builds, or answer the query themselves.
type sending struct {
	gorm.ConnPool
	gorm.TxCommitter
	has   func(text, words string) bool
	words [2]string // one of which the text must have
	sent  bool
}

func (s *sending) note(text string) {
	for _, words := range s.words {
		s.sent = s.sent || words != "" && s.has(text, words)
	}
}

// QueryContext notes the text.
func (s *sending) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	s.note(text)
	return s.ConnPool.QueryContext(ctx, text, args...)
}

// QueryRowContext notes the text.
func (s *sending) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	s.note(text)
	return s.ConnPool.QueryRowContext(ctx, text, args...)
}

// NoteSending lets the query of the statement note whether a text is sent that has one of these words, as has tells.
func NoteSending(stmt *gorm.Statement, has func(text, words string) bool, words [2]string) {
	tx, _ := stmt.ConnPool.(gorm.TxCommitter)
	s := &sending{ConnPool: stmt.ConnPool, TxCommitter: tx, has: has, words: words}
	stmt.ConnPool = s
}

// WasSent gives the statement its pool back, and reports whether such a text was sent, or none had to be.
func WasSent(stmt *gorm.Statement) bool {
	if columns, are := stmt.ConnPool.(*Columns); are {
		if _, is := columns.ConnPool.(*sending); is {
			ColumnsNoted(stmt) // by a query that panicked
		}
	}
	s, noted := stmt.ConnPool.(*sending)
	if !noted {
		return true
	}
	stmt.ConnPool = s.ConnPool
	return s.sent
}

// EndComment begins a new line where a comment at the end of the text would swallow what follows.
func EndComment(stmt *gorm.Statement) {
	if text := stmt.SQL.String(); strings.Contains(text, "--") || strings.Contains(text, "#") { // as MariaDB's may begin
		_ = stmt.WriteByte('\n')
	}
}
