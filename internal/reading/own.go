package reading

import (
	"reflect"
	"strconv"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// SelectOwnUnread makes a query return rows that its own transaction wrote without a version. It is for structs that a rollback cannot reach:
// copies that gorm.G returns, and structs of transactions whose end gormlock does not see. The query itself compares the xmin of the row, so writes
// of triggers and raw SQL count too.
func SelectOwnUnread(s clause.Select, stmt *gorm.Statement) {
	if !outOfReach(stmt) {
		return
	}
	noteWritten(stmt)
	m := model.Of(stmt.DB)
	_, grouped := stmt.Clauses["GROUP BY"]
	whole := len(s.Columns) == 0 || len(stmt.Selects) == 0 && len(s.Columns) >= len(stmt.Schema.DBNames)
	if m == nil || m.Column == nil || !readsStructs(stmt) || s.Expression != nil || s.Distinct || grouped || !whole || !journal.HasXmin(stmt) {
		return
	}
	stmt.Clauses[ownUnread] = clause.Clause{Expression: clause.Expr{}}
	version, unread := m.In(stmt).Column, m.Column.Unread() // not NULL: GORM would leave the old value in the struct
	own := "'" + strconv.FormatInt(unread.N, 10) + "'"
	switch {
	case m.Column.IsTemporal():
		own = unread.Time().Format("'2006-01-02 15:04:05-07'")
	case m.Column.IsInteger():
		version += "::bigint" // the column may be narrower than its field
	}
	xmin := stmt.Quote(clause.Column{Table: clause.CurrentTable, Name: "xmin"})
	_, locks := stmt.Clauses["FOR"]
	_, _ = stmt.WriteString("," + journal.ByWriter(xmin, version, own, locks) + " AS ")
	stmt.WriteQuoted(m.Column.Field.Name) // not the column's name, which would make an ORDER BY ambiguous
}

// withoutOwn are the columns of a query without the one of SelectOwnUnread, which is the last and replaces another one.
func withoutOwn(text string, names []string) []string {
	if len(names) > 0 && strings.Contains(text, journal.BeginsByWriter) {
		return names[:len(names)-1]
	}
	return names
}

// ownUnread marks, among the clauses of a query, that the server leaves versions out.
const ownUnread = "gormlock:own_unread"

// outOfReach reports whether a rollback cannot reach what the query reads, and the transaction may have written some of it.
func outOfReach(stmt *gorm.Statement) bool {
	if stmt.DryRun || stmt.Error != nil || stmt.Schema == nil || !statement.IsPostgres(stmt.DB) || !journal.InTransaction(stmt) {
		return false
	}
	if j := journal.Of(stmt); j != nil {
		return j.Written() > 0 && model.NeedsJournal(stmt.DB, stmt.Schema) && statement.InCopyingRead()
	}
	return model.NeedsJournal(stmt.DB, stmt.Schema)
}

// readsStructs reports whether the destination of a query is structs of its model.
func readsStructs(stmt *gorm.Statement) bool {
	t := reflect.TypeOf(stmt.Dest)
	for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		t = t.Elem()
	}
	return t == stmt.Schema.ModelType || t != nil && t.Kind() == reflect.Interface
}
