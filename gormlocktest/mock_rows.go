package gormlocktest

import (
	"database/sql/driver"
	"regexp"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

// ExpectRowLock expects what is sent before a query that locks rows with Try or Timeout. The query itself is
// mock.ExpectQuery, with NOWAIT at its end for Try. After it comes [ExpectRowLocked], or [ExpectUndo] if the query returned
// [ErrLockNotAvailable], or nothing after any other error of the server.
func ExpectRowLock(t testing.TB, mock sqlmock.Sqlmock, wait gormlock.WaitOption) *sqlmock.ExpectedExec {
	t.Helper()
	return expectIn(t, mock, rowLockTexts(t, wait)[0])
}

// ExpectRowLocked expects what is sent after a query that has locked rows with Try or Timeout, or has found none.
func ExpectRowLocked(t testing.TB, mock sqlmock.Sqlmock, wait gormlock.WaitOption) *sqlmock.ExpectedExec {
	t.Helper()
	return expectIn(t, mock, rowLockTexts(t, wait)[1])
}

// rowLockTexts are the texts before the query and after it.
func rowLockTexts(t testing.TB, wait gormlock.WaitOption) []string {
	t.Helper()
	return heard(t, func(tx *gorm.DB) error {
		return tx.Table("rows").Clauses(gormlock.RowLock(gormlock.ForUpdate, wait)).Find(&[]map[string]any{}).Error
	})
}

// ExpectClaim expects a Claim of rows of the table, which may be "schema.table", and gives it these, in their order.
func ExpectClaim(mock sqlmock.Sqlmock, table string, columns []string, rows ...[]driver.Value) *sqlmock.ExpectedQuery {
	claimed := sqlmock.NewRows(append(columns[:len(columns):len(columns)], "gormlock_place"))
	for i, row := range rows {
		claimed.AddRow(append(row[:len(row):len(row)], int64(i+1))...)
	}
	whole, own := tableNames(table)
	return mock.ExpectQuery(`(^| )UPDATE ` + whole + ` SET .* RETURNING ` + own + `\.\*.*"gormlock_place"$`).WillReturnRows(claimed)
}

// ExpectVersionedUpdate expects an update of one row of the table, which may be "schema.table", that compares the version in
// column, a number, and moves it: of a struct that was read, by Save, Update(s) or a soft delete. Unless told otherwise it
// changes one row. One that changes none is followed by [ExpectStale]. If the struct needs a value that only the server
// knows, the update is a query: use [ExpectVersionedReturning].
func ExpectVersionedUpdate(mock sqlmock.Sqlmock, table, column string) *sqlmock.ExpectedExec {
	whole, own := tableNames(table)
	name := quoted(column)
	return mock.ExpectExec(`^UPDATE ` + whole + ` SET (.*,)?` + name + `=.* WHERE .*` + own + `\.` + name + `=\$\d+`).WillReturnResult(granted)
}

// ExpectVersionedDelete expects a delete of one row of the table, which may be "schema.table", that compares the version
// in column. Unless told otherwise it deletes one row. One that deletes none is followed by [ExpectStale].
func ExpectVersionedDelete(mock sqlmock.Sqlmock, table, column string) *sqlmock.ExpectedExec {
	whole, own := tableNames(table)
	return mock.ExpectExec(`^DELETE FROM ` + whole + ` WHERE .*` + own + `\.` + quoted(column) + `=\$\d+`).WillReturnResult(granted)
}

// ExpectVersionedReturning expects an update or delete of the table, which may be "schema.table", that compares the version
// in column and returns what only the server knows: the new version (of Touch, or if it is a time or xmin), the column of a
// gorm.Expr in a map, the keys of several structs. columns are the columns that it returns, and rows the rows that it
// changes. If a row is missing, expect [ExpectStale] next.
func ExpectVersionedReturning(mock sqlmock.Sqlmock, table, column string, columns []string, rows ...[]driver.Value) *sqlmock.ExpectedQuery {
	whole, own := tableNames(table)
	return mock.ExpectQuery(`^(UPDATE|DELETE FROM) ` + whole + ` .*WHERE .*` + own + `\.` + quoted(column) + `.* RETURNING ` + list(columns) + `(,CASE WHEN .* AS gormlock_moved)?$`).
		WillReturnRows(sqlmock.NewRows(columns).AddRows(rows...))
}

// ExpectStale expects the read that asks why a versioned write changed nothing, which is also that of VerifyVersion, and
// gives it the row as it is now: its primary key and its version, in this order. Without a row it was deleted.
func ExpectStale(mock sqlmock.Sqlmock, table string, columns []string, rows ...[]driver.Value) *sqlmock.ExpectedQuery {
	whole, _ := tableNames(table)
	return mock.ExpectQuery(`^SELECT ` + list(columns) + ` FROM ` + whole + ` WHERE `).WillReturnRows(sqlmock.NewRows(columns).AddRows(rows...))
}

// ExpectFencedUpdate expects an update of one row of the table, which may be "schema.table", that is guarded by the token
// in column. Unless told otherwise it changes one row. One that changes none is followed by [ExpectFenced].
func ExpectFencedUpdate(mock sqlmock.Sqlmock, table, column string) *sqlmock.ExpectedExec {
	whole, own := tableNames(table)
	name := quoted(column)
	return mock.ExpectExec(`^UPDATE ` + whole + ` SET (.*,)?` + name + `=\$.* WHERE .*` + own + `\.` + name + `,0\)<=\$.* NOT EXISTS \(SELECT 1 FROM gormlock_fence `).
		WillReturnResult(granted)
}

// ExpectFenced expects the read that asks why a fenced write changed nothing, and answers that this token is the latest
// one that was issued. If it is greater than that of the write, the write is ErrFenced; else there is no such row, which
// is no error, as without a fence.
func ExpectFenced(mock sqlmock.Sqlmock, table string, latest int64) *sqlmock.ExpectedQuery {
	whole, _ := tableNames(table)
	return mock.ExpectQuery(`^SELECT \* FROM \(SELECT \(SELECT token FROM gormlock_fence .* FROM ` + whole + ` WHERE `).
		WillReturnRows(sqlmock.NewRows([]string{"gormlock_latest", "no row"}).AddRow(latest, nil))
}

// tableNames are the patterns of a table in a statement: as it is named first, and before its columns.
func tableNames(table string) (whole, own string) {
	schema, name, found := strings.Cut(table, ".")
	if !found {
		return quoted(table), quoted(table)
	}
	return quoted(schema) + `\.` + quoted(name), quoted(name)
}

func quoted(name string) string { return regexp.QuoteMeta(`"` + name + `"`) }

// list is the pattern of a list of columns.
func list(columns []string) string {
	names := make([]string, len(columns))
	for i, column := range columns {
		names[i] = quoted(column)
	}
	return strings.Join(names, ",")
}
