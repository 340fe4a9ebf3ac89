package rowlock

import (
	"database/sql"
	"fmt"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/sqltx"
	"github.com/gormlock/gormlock/internal/statement"
)

// If a lock is not sent, the server reports no error. That can happen: the caller's text may end in a comment, a scope or a plugin may
// build other clauses, and a callback may answer the query from a cache. So the query is checked when it is sent.

// behindComment builds the clause of a lock. If the text ends in a comment, it begins a new line first.
func behindComment(c clause.Clause, builder clause.Builder) {
	if stmt, ok := builder.(*gorm.Statement); ok {
		statement.EndComment(stmt)
	}
	c.Builder = nil
	c.Build(builder)
}

// begins are the first words of the clause.
func (l Lock) begins(stmt *gorm.Statement) string {
	switch {
	case !dialect.Of(stmt.DB).IsMySQL():
		return [...]string{"", "FOR UPDATE", "FOR NO KEY UPDATE", "FOR SHARE", "FOR KEY SHARE"}[l.Strength]
	case l.keyword(stmt) == "LOCK":
		return "LOCK IN SHARE MODE"
	case l.shares(stmt):
		return "FOR " + ForShare.SQL()
	}
	return "FOR " + forUpdate.SQL()
}

// mustBeSent notes whether the query is sent with a locking clause that begins with one of these words. End and EndRow look at the note.
func mustBeSent(stmt *gorm.Statement, words, or string) {
	has := sqltext.HasClause
	if dialect.Of(stmt.DB).IsMySQL() { // it has other strings and comments
		has = hasBehindNoComment
	}
	statement.NoteSending(stmt, has, [2]string{words, or})
}

// hasBehindNoComment reports whether the words are in the text, in a line where no comment can begin before them.
func hasBehindNoComment(text, words string) bool {
	at := strings.LastIndex(text, words)
	if at < 0 {
		return false
	}
	line := text[strings.LastIndexByte(text[:at], '\n')+1 : at]
	return !strings.Contains(line, "--") && !strings.Contains(line, "#")
}

// notSent is the error of a query whose lock was not sent.
func notSent(stmt *gorm.Statement) error {
	return fmt.Errorf("gormlock: %s: the row lock was not sent, so no row is locked: a scope, a callback or a plugin built the query without it, or answered it from a cache. "+
		"Keep FOR among Statement.BuildClauses, and let queries that lock pass by the cache", statement.TableName(stmt))
}

// closeRows closes the rows of a query that was sent without its lock.
func closeRows(stmt *gorm.Statement) {
	switch rows := stmt.Dest.(type) {
	case *sql.Rows:
		if rows != nil {
			_ = rows.Close()
		}
		stmt.Dest = (*sql.Rows)(nil)
	case *sql.Row:
		if rows != nil {
			_ = rows.Scan()
		}
		stmt.Dest = sqltx.FailedRow(notSent(stmt))
	}
}
