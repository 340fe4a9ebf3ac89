package reading

import (
	"database/sql"
	"reflect"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// noteAgain notes that structs which other transactions may have had were read again. plain means that GORM has written the list of columns.
func noteAgain(db *gorm.DB, rows reflect.Value, plain bool) {
	if db.Error != nil || db.DryRun {
		return
	}
	if journal.StrayEnded(); memory.HasStrays() {
		statement.EachStruct(rows, memory.Forget)
	}
	if memory.HasKeyless() {
		statement.EachStruct(rows, memory.GotKey)
	}
	stmt := db.Statement
	if !plain || len(stmt.Selects)+len(stmt.Omits) > 0 || !journal.HasOpen() || !readsCommitted(stmt) {
		return
	}
	if m := model.Of(db); m != nil && m.Err == nil && m.Column != nil {
		statement.EachStruct(rows, func(row reflect.Value) { memory.NoteRead(m, row) })
	}
}

// readsCommitted reports whether a statement is in no transaction. On a single connection, the program may have begun one by text.
func readsCommitted(stmt *gorm.Statement) bool {
	_, one := statement.Unprepared(stmt.ConnPool).(*sql.Conn)
	return !one && statement.Transaction(stmt) == nil
}
