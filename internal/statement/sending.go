package statement

import (
	"context"
	"database/sql"
	"strings"

	"gorm.io/gorm"
)

// sending replaces a statement's transaction while GORM executes a query, and notes whether a text with the required words was sent. Other
// plugins' callbacks may change what GORM builds, or answer the query themselves.
type sending struct {
	gorm.ConnPool
	gorm.TxCommitter
	has   func(text, words string) bool
	words [2]string // the text must have one of them
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

// NoteSending makes the query of the statement note whether a text with one of these words is sent. has reports whether a text has the words.
func NoteSending(stmt *gorm.Statement, has func(text, words string) bool, words [2]string) {
	tx, _ := stmt.ConnPool.(gorm.TxCommitter)
	s := &sending{ConnPool: stmt.ConnPool, TxCommitter: tx, has: has, words: words}
	stmt.ConnPool = s
}

// WasSent restores the statement's pool, and reports whether such a text was sent. Without NoteSending it reports true.
func WasSent(stmt *gorm.Statement) bool {
	if columns, are := stmt.ConnPool.(*Columns); are {
		if _, is := columns.ConnPool.(*sending); is {
			ColumnsNoted(stmt) // left by a query that panicked
		}
	}
	s, noted := stmt.ConnPool.(*sending)
	if !noted {
		return true
	}
	stmt.ConnPool = s.ConnPool
	return s.sent
}

// EndComment begins a new line if the text may end in a comment, which would swallow what follows.
func EndComment(stmt *gorm.Statement) {
	if text := stmt.SQL.String(); strings.Contains(text, "--") || strings.Contains(text, "#") { // # begins a comment in MariaDB
		_ = stmt.WriteByte('\n')
	}
}
