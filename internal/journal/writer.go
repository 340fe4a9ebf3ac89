package journal

import (
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock/internal/statement"
)

const (
	ownTransaction = "pg_current_xact_id_if_assigned()::text::bigint"
	// BeginsByWriter is the beginning of the text of ByWriter, as one of several columns.
	BeginsByWriter = ",CASE WHEN " + ownTransaction + " IS NULL OR "
)

// ByWriter is the SQL text of a CASE over the xmin of a visible row: own if this transaction wrote the row, perhaps in a savepoint, released or not,
// and others if another transaction did. An id that the snapshot does not know belongs to a transaction that began later. A statement sees a row of
// such a transaction only if it waited for a lock on the row, and then that transaction is committed: locks says that the statement locks rows. An
// id far beyond the snapshot belongs to a row that was frozen before transaction ids wrapped around.
func ByWriter(xmin, others, own string, locks bool) string {
	later := "((" + xmin + "::text::bigint-" + ownTransaction + ")&4294967295)" // how far the id is after the transaction's own: savepoints have ids too
	id := "(" + ownTransaction + "+" + later + ")"
	beyond := id + "-pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
	ended := "pg_xact_status(" + id + "::text::xid8)<>'in progress'"
	unknown := "false"
	if locks {
		unknown = ended
	}
	return "CASE WHEN " + ownTransaction + " IS NULL OR " + later + ">=2147483648 THEN " + others +
		" WHEN CASE WHEN " + beyond + "<0 THEN " + ended + " WHEN " + beyond + ">=16777216 THEN true ELSE " + unknown + " END THEN " + others +
		" ELSE " + own + " END"
}

// HasXmin reports whether rows of the statement's table have an xmin: rows of a view do not.
func HasXmin(stmt *gorm.Statement) bool { return hasXmin(stmt, statement.NameInSQL(stmt)) }

func hasXmin(stmt *gorm.Statement, table string) bool {
	return Ask(stmt, "xmin", table, "SELECT relkind IN ('r','p','m') FROM pg_class WHERE oid=to_regclass($1)", table)
}

// WroteAny reports whether the statement's own transaction wrote the current version of any row that a query finds. If the server does not tell,
// or is not PostgreSQL, known is false.
func WroteAny(stmt *gorm.Statement, query func(q *gorm.DB) *gorm.DB) (wrote, known bool) {
	if !statement.IsPostgres(stmt.DB) || statement.Transaction(stmt) == nil {
		return false, false
	}
	q := stmt.DB.Session(&gorm.Session{NewDB: true, DryRun: true, SkipHooks: true, Logger: logger.Discard}).Unscoped()
	q = query(q).Select("1").Where(ByWriter("xmin", "false", "true", false)).Limit(1).Find(&[]map[string]any{})
	if q.Error != nil || !hasXmin(stmt, statement.NameInSQL(q.Statement)) {
		return false, false
	}
	rows, err := statement.Unprepared(stmt.ConnPool).QueryContext(stmt.Context, q.Statement.SQL.String(), q.Statement.Vars...)
	if err != nil {
		return false, false
	}
	defer func() { _ = rows.Close() }()
	wrote = rows.Next()
	return wrote, rows.Err() == nil
}
