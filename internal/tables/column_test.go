package tables_test

import (
	"database/sql"
	"slices"
	"testing"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/tables"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func columnsOf(t *testing.T, db *sql.DB, table string) (found []tables.Column) {
	t.Helper()
	var oid uint32
	if err := db.QueryRowContext(t.Context(), "SELECT to_regclass($1)::oid", table).Scan(&oid); err != nil {
		t.Fatal(err)
	}
	rows, err := db.QueryContext(t.Context(), tables.ColumnsOf, oid)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var c tables.Column
		if err := rows.Scan(&c.Name, &c.Type, &c.NotNull, &c.Default); err != nil {
			t.Fatal(err)
		}
		found = append(found, c)
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return found
}

// What we read in the DDL is what the server makes of it.
func TestColumns_areThoseOfTheServer(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.Schema())
	quotes := pgtest.SQLDB(t, pgtest.Schema(), pgtest.Param("quote_all_identifiers", "on"))
	for _, table := range tables.Own(gormlock.OnceSchema) {
		if _, err := quotes.ExecContext(t.Context(), table.Migration()); err != nil {
			t.Fatal(err)
		}
		if d := table.Deviations(columnsOf(t, quotes, table.Name)); len(d) > 0 {
			t.Errorf("%s deviates from itself where all names are quoted: %v", table.Name, d)
		}
		if _, err := db.ExecContext(t.Context(), table.Migration()); err != nil {
			t.Fatal(err)
		}
		if want, found := table.Columns(), columnsOf(t, db, table.Name); !slices.Equal(want, found) {
			t.Errorf("%s:\n%v\nthe server has\n%v", table.Name, want, found)
		}
		if d := table.Deviations(columnsOf(t, db, table.Name)); len(d) > 0 {
			t.Errorf("%s deviates from itself: %v", table.Name, d)
		}
		if made := table.Indexes(); len(made) != len(table.Index) {
			t.Errorf("%s: %v, of the indexes %v", table.Name, made, table.Index)
		}
	}
}

// A table that was upgraded from an earlier version has defaults that the DDL lacks.
func TestDeviations_noneAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.Schema())
	for _, table := range tables.Own(gormlock.OnceSchema) {
		statements := []string{table.Migration()}
		for _, c := range table.Columns() {
			if table.Definition(c.Name) != "" {
				statements = append(statements, "ALTER TABLE "+table.Name+" DROP COLUMN "+c.Name)
			}
		}
		for _, statement := range append(statements, table.Migration()) {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		if d := table.Deviations(columnsOf(t, db, table.Name)); len(d) > 0 {
			t.Errorf("%s: %v", table.Name, d)
		}
	}
}
