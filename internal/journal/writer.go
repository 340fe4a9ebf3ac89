package journal

import (
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock/internal/statement"
)

const (
	ownTransaction = "pg_current_xact_id_if_assigned()::text::bigint"
	// BeginsByWriter is how the text of ByWriter begins, as a column.
	BeginsByWriter = ",CASE WHEN (" + ownTransaction + " IS NULL OR "
)

// ByWriter is others where the xmin of a visible row is that of another transaction, and own where it is that of this one or of a savepoint of it,
// which may be released. An id that the snapshot does not know belongs to a transaction that has begun since. A statement sees a row of such another
// one only if it has waited for a lock on it, so that it was committed. An id far beyond belongs to a row that was frozen before the ids came round.
// A row of a foreign table has xmin 0. It may be of such a table below the one that is read, and counts as own: nobody says who wrote it.
func ByWriter(xmin, others, own string, locks bool) string {
	later := "((" + xmin + "::text::bigint-" + ownTransaction + ")&4294967295)" // how many ids after the transaction's own, savepoints have some
	id := "(" + ownTransaction + "+" + later + ")"
	beyond := id + "-pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
	ended := "pg_xact_status(" + id + "::text::xid8)<>'in progress'"
	unknown := "false"
	if locks {
		unknown = ended
	}
	ended = "CASE WHEN " + beyond + "<0 THEN " + ended + " WHEN " + beyond + ">=16777216 THEN true ELSE " + unknown + " END"
	return "CASE WHEN (" + ownTransaction + " IS NULL OR " + later + ">=2147483648 OR " + ended + ") AND " + xmin + "::text<>'0' THEN " + others +
		" ELSE " + own + " END"
}

// HasXmin reports whether rows of the statement's table say which transaction wrote them: rows of a view do not.
func HasXmin(stmt *gorm.Statement) bool { return hasXmin(stmt, statement.NameInSQL(stmt)) }

func hasXmin(stmt *gorm.Statement, table string) bool {
	return Ask(stmt, "xmin", table, "SELECT relkind IN ('r','p','m') FROM pg_class WHERE oid=to_regclass($1)", table)
}

// WroteAny reports whether the transaction of a statement has itself written one of the rows of a model that a query finds, as they are now. Where
// the server does not tell, or only PostgreSQL would, known is false.
func WroteAny(stmt *gorm.Statement, query func(q *gorm.DB) *gorm.DB) (wrote, known bool) {
	if !statement.IsPostgres(stmt.DB) || statement.Transaction(stmt) == nil {
		return false, false
	}
	q := stmt.DB.Session(&gorm.Session{NewDB: true, DryRun: true, SkipHooks: true, Logger: logger.Discard}).Unscoped()
	q = query(q).Select("xmin::text<>'0'").Where(ByWriter("xmin", "false", "true", false)).Limit(1).Find(&[]map[string]any{})
	if q.Error != nil || !hasXmin(stmt, statement.NameInSQL(q.Statement)) {
		return false, false
	}
	rows, err := statement.Unprepared(stmt.ConnPool).QueryContext(stmt.Context, q.Statement.SQL.String(), q.Statement.Vars...)
	if err != nil {
		return false, false
	}
	defer func() { _ = rows.Close() }()
	if !rows.Next() {
		return false, rows.Err() == nil
	}
	return true, rows.Scan(&known) == nil && known
}
