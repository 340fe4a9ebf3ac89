package statement

import (
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
	if stmt.SQL.Len() == 0 { // a server that prepares the statement looks at its types
		delete(stmt.Clauses, "FOR")
		db.Error = nil
		callbacks.BuildQuerySQL(db)
	}
	text := stmt.SQL.String()
	stmt.SQL.Reset()
	Write(stmt, "SELECT * FROM (", text, ") AS refused WHERE CAST(")
	stmt.AddVar(stmt, sqltx.FailedValue{Err: err})
	Write(stmt, " AS boolean)")
}
