package migrations_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// counter is a table with a version column that has a trigger.
type counter struct{ table, column string }

// triggers makes the tables, which may share columns, and then a trigger for each, twice.
func triggers(t *testing.T, db *gorm.DB, all ...counter) {
	t.Helper()
	for _, c := range all {
		stand.Must(t, db.Exec(fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %s (n int)`, quoted(c.table))).Error)
		stand.Must(t, db.Exec(fmt.Sprintf(`ALTER TABLE %s ADD "%s" int NOT NULL DEFAULT 1`, quoted(c.table), c.column)).Error)
	}
	for range 2 {
		for _, c := range all {
			stand.Must(t, db.Exec(gormlock.VersionTrigger(c.table, c.column)).Error)
		}
	}
	for _, c := range all {
		stand.Must(t, db.Exec(fmt.Sprintf(`INSERT INTO %s VALUES (1)`, quoted(c.table))).Error)
	}
}

func quoted(table string) string { return `"` + strings.ReplaceAll(table, ".", `"."`) + `"` }

// moves fails the test unless an update moves each version by one, and each has one trigger with a function of its own.
func moves(t *testing.T, db *gorm.DB, all ...counter) {
	t.Helper()
	updated := map[string]bool{}
	for _, c := range all {
		if !updated[c.table] {
			stand.Must(t, db.Exec(fmt.Sprintf(`UPDATE %s SET n = 2`, quoted(c.table))).Error)
		}
		updated[c.table] = true
	}
	for _, c := range all {
		var version int
		stand.Must(t, db.Raw(fmt.Sprintf(`SELECT max("%s") FROM %s`, c.column, quoted(c.table))).Scan(&version).Error)
		stand.Equal(t, c.table+"."+c.column, version, 2)
	}
	var made, functions int
	stand.Must(t, db.Raw(`SELECT count(*), count(DISTINCT tgfoid) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
		WHERE c.relnamespace = current_schema()::regnamespace AND NOT tgisinternal`).Row().Scan(&made, &functions))
	stand.Equal(t, "triggers", made, len(all))
	stand.Equal(t, "functions", functions, len(all))
}

// The server cuts names to 63 bytes.
func TestVersionTrigger_ofLongNames(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	const long = "monthly_measurements_of_the_northern_region_stations_"
	umlauts := strings.Repeat("ü", 30)
	all := []counter{{long + "a", "version"}, {long + "b", "lock_version"}, {long + "b", "version"}, {umlauts + "a", "version"}, {umlauts + "b", "revision"}}
	triggers(t, db, all...)
	moves(t, db, all...)
}

func TestVersionTrigger_ofTwoColumns(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	all := []counter{
		{"pages", "version"}, {"pages", "lock_version"}, {"pages", "_version"}, {"pages", "Version"}, {"pages_", "version"}, {"pages__lock_version", "version"},
		{"pages__lock", "version"}, {"pages", "lock__version"}, {"Pages", "version"}, {"it's $$a$$ page", "version"}, {"it_s_a_page", "version"},
	}
	triggers(t, db, all...)
	moves(t, db, all...)
}

// shop.acc and shop_acc in the schema shop are two tables, and acc is the same one as shop.acc there.
func TestVersionTrigger_ofSchemas(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	var schema string
	stand.Must(t, db.Raw("SELECT current_schema()").Scan(&schema).Error)
	all := []counter{{schema + ".acc", "version"}, {schema + "_acc", "lock_version"}}
	triggers(t, db, all...)
	stand.Must(t, db.Exec(gormlock.VersionTrigger("acc", "version")).Error)
	moves(t, db, all...)
}

// The names of the guides, which drop them.
func TestVersionTrigger_namesAreReadable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ table, column, function, trigger string }{
		{"accounts", "version", `"gormlock_version_accounts"`, `"gormlock_version_accounts"`},
		{"order_lines", "lock_version", `"gormlock_version_order_lines__lock_version"`, `"gormlock_version_order_lines__lock_version"`},
		{"shop.accounts", "version", `"shop"."gormlock_version_accounts"`, `"gormlock_version_accounts"`},
		{"Accounts", "version", `"gormlock_version_accounts___`, `"gormlock_version_accounts___`},
	} {
		ddl := gormlock.VersionTrigger(c.table, c.column)
		for _, part := range []string{"CREATE OR REPLACE FUNCTION " + c.function, "EXECUTE FUNCTION " + c.function, "DROP TRIGGER IF EXISTS " + c.trigger, "CREATE TRIGGER " + c.trigger} {
			if !strings.Contains(ddl, part) {
				t.Errorf("%s.%s: no %s in\n%s", c.table, c.column, part, ddl)
			}
		}
	}
}

// Programs that start together make the trigger at once.
func TestVersionTrigger_ofSeveralProgramsAtOnce(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	stand.MustDo(t, db.Exec(`CREATE TABLE pages (n int, version int NOT NULL DEFAULT 1)`))
	var programs sync.WaitGroup
	for range 4 {
		programs.Go(func() {
			for range 20 {
				if err := db.Exec(gormlock.VersionTrigger("pages", "version")).Error; err != nil {
					t.Error(err)
				}
			}
		})
	}
	programs.Wait()
}
