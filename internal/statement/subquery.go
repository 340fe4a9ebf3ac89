package statement

import (
	"errors"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"

	"github.com/gormlock/gormlock/internal/sqltx"
)

// FailAround makes the statement around a sub-query fail with the error of the sub-query. GORM drops that error and writes no text for
// the sub-query: to SQLite IN () means no row, and NOT IN () every row.
func FailAround(db *gorm.DB) {
	if !db.DryRun || db.Error == nil || !InSubQuery() {
		return
	}
	stmt, err := db.Statement, db.Error
	if stmt.SQL.Len() == 0 && stmt.Table == "" && stmt.TableExpr == nil { // no text is right, so the server says what is wrong
		Write(stmt, "SELECT * FROM ")
		stmt.WriteQuoted(asName(err))
		return
	}
	if stmt.SQL.Len() == 0 { // a server that prepares the statement looks at its types
		delete(stmt.Clauses, "FOR")
		db.Error = nil
		callbacks.BuildQuerySQL(db)
	}
	text := stmt.SQL.String()
	stmt.SQL.Reset()
	Write(stmt, "SELECT * FROM (", text, ") AS refused WHERE CAST(")
	stmt.AddVar(stmt, sqltx.FailedValue{Err: around(err)})
	Write(stmt, " AS boolean)")
}

// around is the error of a sub-query for the statement around it. That one has not looked for its own row yet, so it is not ErrRecordNotFound:
// programs create the row then.
func around(err error) error {
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return foundNothingError{err}
	}
	return err
}

// foundNothingError is an error of a sub-query that is, or has, ErrRecordNotFound.
type foundNothingError struct{ err error }

func (e foundNothingError) Error() string {
	return "gormlock: a query that is an argument of this statement was executed before, and failed: pass a query that was not executed: " + e.err.Error()
}

func (e foundNothingError) Is(target error) bool {
	return target != gorm.ErrRecordNotFound && errors.Is(e.err, target)
}

func (e foundNothingError) As(target any) bool { return errors.As(e.err, target) }

// asName is an error as a name that no table has. Servers say which name they do not know.
func asName(err error) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("\"`.?$@\x00", r) {
			return ' '
		}
		return r
	}, err.Error())
}
