package once_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A function after which the row of its key is not found any more: its effect is taken back, and an error says why. Nothing is written
// to the row that another table has for the key.
func TestOnce_functionThatLosesItsRow(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.Through(pgtest.Database(t)))
	role := "once_of_" + db.Migrator().CurrentDatabase()
	for _, text := range []string{
		"CREATE SCHEMA tenant",
		"CREATE TABLE tenant.gormlock_once (LIKE gormlock_once INCLUDING ALL)",
		"CREATE TABLE tenant.payments (LIKE payments INCLUDING ALL)",
		"INSERT INTO tenant.gormlock_once (key, result) VALUES ('stored', '5')",
		"CREATE SCHEMA bare",
		"CREATE ROLE " + role,
		"DO $$ BEGIN EXECUTE 'GRANT USAGE ON SCHEMA ' || current_schema() || ' TO " + role + "'; END $$",
		"GRANT ALL ON gormlock_once, payments, payments_id_seq TO " + role,
		"ALTER TABLE gormlock_once ENABLE ROW LEVEL SECURITY",
	} {
		stand.Must(t, db.Exec(text).Error)
	}
	t.Cleanup(func() {
		stand.Must(t, db.Exec("DROP OWNED BY "+role).Error)
		stand.Must(t, db.Exec("DROP ROLE "+role).Error)
	})
	for name, c := range map[string]struct{ key, change, says string }{
		"another search_path":                         {"k", "SET LOCAL search_path = tenant", "search_path or role"},
		"another search_path, where the key is known": {"stored", "SET LOCAL search_path = tenant", "search_path or role"},
		"a search_path without the table":             {"k", "SET LOCAL search_path = bare", "search_path or role"},
		"another role":                                {"k", "SET LOCAL ROLE " + role, "search_path or role"},
		"the row is removed":                          {"k", "DELETE FROM gormlock_once", "has removed the row"},
	} {
		for range 2 {
			err := db.Transaction(func(tx *gorm.DB) error {
				_, err := gormlock.Once(tx, c.key, func(tx *gorm.DB) (int, error) {
					if err := tx.Create(&payment{Key: c.key}).Error; err != nil {
						return 0, err
					}
					return 42, tx.Exec(c.change).Error
				})
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: %v", name, err)
				}
				var path string
				if err := tx.Raw("SELECT current_setting('search_path') || ' ' || current_user").Scan(&path).Error; err != nil || strings.Contains(path, "tenant") || strings.Contains(path, role) {
					t.Errorf("%s: after it: %s %v", name, path, err)
				}
				return nil
			})
			stand.Must(t, err)
			countPayments(t, db, 0)
			countOnceKeys(t, db, 0)
		}
	}
	var stored string
	if err := db.Raw("SELECT result::text FROM tenant.gormlock_once").Scan(&stored).Error; err != nil || stored != "5" {
		t.Errorf("the other table has %q: %v", stored, err)
	}
}

// A function that sets the search_path and sets it back has its result stored.
func TestOnce_functionThatSetsSettingsBack(t *testing.T) {
	t.Parallel()
	db := open(t)
	for range 2 {
		got, err := once(db, "k", func(tx *gorm.DB) (n int, err error) {
			return 42, tx.Exec("SELECT set_config('gormlock.test', current_setting('search_path'), true); SET LOCAL search_path = pg_catalog; " +
				"SELECT set_config('search_path', current_setting('gormlock.test'), true)").Error
		})
		if err != nil || got != 42 {
			t.Error(got, err)
		}
	}
}
