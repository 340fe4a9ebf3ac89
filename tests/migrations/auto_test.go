package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/migrate"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/tables"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// broken cannot be migrated: its check has a syntax error.
type broken struct {
	ID int64
	N  int `gorm:"check:n >"`
}

// AutoMigrate is tested on a database of its own: the lock of migrations is one for each.
func TestAutoMigrate(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	open := func(t *testing.T, name string) (*gorm.DB, *pgtest.Logger) {
		t.Helper()
		plugin := gormlock.New()
		t.Cleanup(func() { _ = plugin.Close() })
		db := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(plugin), pgtest.Param("application_name", name))
		heard := pgtest.NewLogger()
		return db.Session(&gorm.Session{Logger: heard}), heard
	}
	db, _ := open(t, "first")
	has := func(model any) bool { return db.Migrator().HasTable(model) }

	t.Run("all or nothing", func(t *testing.T) {
		if err := gormlock.AutoMigrate(db, &stand.Account{}, &broken{}); err == nil || has(&stand.Account{}) {
			t.Errorf("%v, and the first table is there: %t", err, has(&stand.Account{}))
		}
		if err := gormlock.AutoMigrate(db, &stand.Account{}, &misspelled{}); err == nil || !strings.Contains(err.Error(), "gormlok") || has(&stand.Account{}) {
			t.Error(err)
		}
		if err := gormlock.AutoMigrate(db); !errors.Is(err, gormlock.ErrOption) {
			t.Error(err)
		}
	})
	t.Run("the caller's transaction decides", func(t *testing.T) {
		undo := errors.New("undo")
		err := db.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, gormlock.AutoMigrate(tx, &stand.Account{}))
			if err := gormlock.AutoMigrate(tx, &plain{}, &broken{}); err == nil {
				t.Error("a broken one")
			}
			return errors.Join(undo, tx.Create(&stand.Account{}).Error)
		})
		if !errors.Is(err, undo) || strings.Contains(err.Error(), "25P02") || has(&stand.Account{}) {
			t.Error(err)
		}
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error { return gormlock.AutoMigrate(tx, &plain{}) }))
		stand.Equal(t, "committed", has(&plain{}), true)
	})
	t.Run("a wait says for whom, and ends with the context", func(t *testing.T) {
		other, heard := open(t, "second")
		for name, begin := range map[string]func(*gorm.DB, func(*gorm.DB) error) error{
			"outside": func(db *gorm.DB, call func(*gorm.DB) error) error { return call(db) },
			"inside":  func(db *gorm.DB, call func(*gorm.DB) error) error { return db.Transaction(call) },
		} {
			held := db.Begin()
			stand.Must(t, gormlock.AutoMigrate(held, &stand.RailsTask{}))
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			began := time.Now()
			err := begin(other.WithContext(ctx), func(db *gorm.DB) error { return gormlock.AutoMigrate(db, &stand.RailsTask{}) })
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 10*time.Second {
				t.Errorf("%s: %v after %s", name, err, time.Since(began))
			}
			if !strings.Contains(fmt.Sprint(err), "(first, client ") {
				t.Errorf("%s: %v", name, err)
			}
			if text := strings.Join(heard.Lines(), "\n"); !strings.Contains(text, "waits for the migration of backend ") || !strings.Contains(text, "(first, client ") {
				t.Errorf("%s: heard %q", name, text)
			}
			err = begin(other, func(db *gorm.DB) error { return migrate.Auto(db, []any{&stand.RailsTask{}}, 700*time.Millisecond) })
			if !errors.Is(err, gormlock.ErrLockTimeout) || !strings.Contains(err.Error(), "(first, client ") {
				t.Errorf("%s: %v", name, err)
			}
			done := make(chan error, 1)
			go func() {
				done <- begin(other, func(db *gorm.DB) error { return gormlock.AutoMigrate(db, &stand.RailsTask{}) })
			}()
			select {
			case <-time.After(700 * time.Millisecond): // beyond one slice of its wait
			case <-t.Context().Done():
			}
			stand.Must(t, held.Rollback().Error)
			stand.Must(t, <-done)
		}
	})
	t.Run("many processes", func(t *testing.T) {
		var all sync.WaitGroup
		for i := range 8 {
			own, _ := open(t, fmt.Sprint("process ", i))
			all.Go(func() {
				if err := gormlock.AutoMigrate(own, &stand.Account{}, &stand.LinedOrder{}, &stand.LinedLine{}, &timed{}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		stand.Must(t, gormlock.Check(db, &stand.Account{}, &timed{}))
		for range 8 {
			own, _ := open(t, "own tables")
			all.Go(func() {
				if err := gormlock.MigrateAll(own); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
	t.Run("a role that may not create", func(t *testing.T) {
		stand.Must(t, db.Exec(`DO $$ BEGIN IF to_regrole('mere_user') IS NULL THEN CREATE ROLE mere_user; END IF; END $$;
			REVOKE CREATE ON SCHEMA public FROM public; GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO mere_user`).Error)
		as := func() error {
			return db.Connection(func(tx *gorm.DB) error {
				stand.Must(t, tx.Exec("SET ROLE mere_user").Error)
				defer tx.Exec("RESET ROLE")
				return gormlock.MigrateAll(tx)
			})
		}
		stand.Must(t, as())
		stand.Must(t, db.Exec("DROP TABLE gormlock_once").Error)
		if err := as(); err == nil || !strings.Contains(err.Error(), "gormlock_once") {
			t.Error(err)
		}
		stand.Must(t, gormlock.MigrateAll(db))
	})
	if err := gormlock.AutoMigrate(stand.OnSQLite(t, nil), &plain{}); !errors.Is(err, gormlock.ErrNotPostgres) {
		t.Error(err)
	}
}

// All tables are as their packages make them, and those of an earlier version become so.
func TestMigrateAll(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	pool, err := db.DB()
	stand.Must(t, err)
	shape := func() string {
		var columns []string
		stand.Must(t, db.Raw(`SELECT format('%s.%s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
			WHERE c.relnamespace = current_schema()::regnamespace AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1`).Scan(&columns).Error)
		return strings.Join(columns, "\n")
	}
	stand.Must(t, errors.Join(lease.Migrate(t.Context(), pool), fence.Migrate(t.Context(), pool), gormlock.MigrateOnce(db)))
	stand.Must(t, db.Exec("CREATE TABLE IF NOT EXISTS other (id int)").Error)
	stand.Must(t, gormlock.MigrateAll(db))
	whole := shape()
	for _, table := range []string{"gormlock_fence.token", "gormlock_lease.holder", "gormlock_schedule.problem", "gormlock_key_name.scope", "gormlock_once.result", "gormlock_once_created_at"} {
		if !strings.Contains(whole, table) {
			t.Errorf("no %s in\n%s", table, whole)
		}
	}
	stand.Must(t, gormlock.MigrateAll(db))
	stand.Equal(t, "again", shape(), whole)
	stand.Must(t, db.Exec(`INSERT INTO gormlock_once (key, result) VALUES ('kept', '1');
		ALTER TABLE gormlock_once DROP COLUMN request, DROP COLUMN expires_at;
		ALTER TABLE gormlock_schedule DROP COLUMN owner, DROP COLUMN failures, DROP COLUMN problem, DROP COLUMN done_at;
		ALTER TABLE gormlock_lease DROP COLUMN data; DROP INDEX IF EXISTS gormlock_once_created_at, gormlock_once_expires_at`).Error)
	stand.Must(t, gormlock.MigrateAll(db))
	stand.Equal(t, "of before", shape(), whole)
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		n, err := gormlock.Once(tx, "kept", func(*gorm.DB) (int, error) { return 2, nil })
		stand.Equal(t, "what was stored", n, 1)
		return err
	}))
	undo := errors.New("undo")
	stand.Must(t, db.Exec("DROP TABLE gormlock_once, gormlock_key_name").Error)
	if err := db.Transaction(func(tx *gorm.DB) error { return errors.Join(gormlock.MigrateAll(tx), undo) }); err != undo && !errors.Is(err, undo) { //nolint:errorlint // joined
		t.Error(err)
	}
	if strings.Contains(shape(), "gormlock_once.") {
		t.Error("the transaction was rolled back, and the table is there")
	}
	func(lockkey.Key) {}(gormlock.LockKey{}) // the same type
}

// A server that writes all names in quotes has the same tables.
func TestMigrateAll_whereAllNamesAreQuoted(t *testing.T) {
	t.Parallel()
	db := stand.Open(t, pgtest.Param("quote_all_identifiers", "on"))
	for range 2 {
		stand.Must(t, gormlock.MigrateAll(db))
	}
}

// A table that somebody made by hand, on which Once fails or whose keys stay for ever, is an error.
func TestMigrateAll_refusesATableThatCannotServe(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	stand.Must(t, gormlock.MigrateAll(db.Session(&gorm.Session{DryRun: true})))
	for change, says := range map[string]string{
		"ALTER COLUMN result SET NOT NULL":                              "table gormlock_once: its column result is NOT NULL, and must take NULL: gormlock doctor --fix",
		"ALTER COLUMN created_at DROP DEFAULT":                          "its column created_at has no default, it must be now()",
		"ALTER COLUMN created_at DROP NOT NULL":                         "its column created_at takes NULL",
		"DROP COLUMN result":                                            "table gormlock_once has no column result: give the renamed column its name back, or add it with the values it had; do not make the table anew, or requests that were done are done again",
		"ADD COLUMN tenant int NOT NULL":                                "its column tenant is no column of gormlock's and refuses NULL",
		"ALTER COLUMN result TYPE jsonb USING result::jsonb":            "",
		"ADD COLUMN tenant int NOT NULL DEFAULT 1, ADD COLUMN memo int": "",
	} {
		err := db.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, gormlock.MigrateAll(tx))
			stand.Must(t, tx.Exec("ALTER TABLE gormlock_once "+change).Error)
			if err := gormlock.MigrateAll(tx); (err != nil) != (says != "") || err != nil && !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", change, err)
			}
			return errors.New("undo")
		})
		if err == nil {
			t.Error("it was committed")
		}
	}
}

// What a table knows of its keys is lost with a new one: a superseded holder writes, an effect happens twice. So no error says to make it
// anew, but of the names of keys, which nothing depends on.
func TestMigrateAll_keepsWhatATableKnows(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	for _, table := range tables.Own(gormlock.OnceSchema) {
		for _, c := range table.Columns() {
			if table.Definition(c.Name) != "" {
				continue // it is added
			}
			err := db.Transaction(func(tx *gorm.DB) error {
				stand.Must(t, gormlock.MigrateAll(tx))
				stand.Must(t, tx.Exec("ALTER TABLE "+table.Name+" RENAME COLUMN "+c.Name+" TO other").Error)
				err := gormlock.MigrateAll(tx)
				text := fmt.Sprint(err)
				if !strings.Contains(text, "table "+table.Name+" has no column "+c.Name+": ") || strings.Contains(text, "rename the table") != (table.Loss == "") || !strings.Contains(text, table.Loss) {
					t.Error(err)
				}
				if table.Loss == "" {
					return errors.New("undo")
				}
				stand.Must(t, tx.Exec("ALTER TABLE "+table.Name+" RENAME COLUMN other TO "+c.Name).Error) // the cure
				return errors.Join(gormlock.MigrateAll(tx), errors.New("undo"))
			})
			if err == nil || err.Error() != "undo" {
				t.Errorf("%s, %s: %v", table.Name, c.Name, err)
			}
		}
	}
	stand.Must(t, gormlock.MigrateAll(db))
	stand.Must(t, db.Exec("ALTER TABLE gormlock_fence RENAME COLUMN token TO tok").Error)
	if err := gormlock.Check(db, &fenced{}); err == nil || !strings.Contains(err.Error(), "gormlock_fence has no column token: give the renamed column its name back") {
		t.Error(err)
	}
}

// A table that was renamed keeps its indexes, and the new one would have none.
func TestMigrate_besideATableThatWasRenamed(t *testing.T) {
	t.Parallel()
	for name, migrate := range map[string]func(*gorm.DB) error{
		"MigrateOnce": gormlock.MigrateOnce,
		"MigrateAll":  gormlock.MigrateAll,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Open(t)
			stand.Must(t, gormlock.MigrateOnce(db))
			stand.Must(t, db.Exec("ALTER TABLE gormlock_once RENAME TO old_once").Error)
			for _, index := range []string{"gormlock_once_created_at", "gormlock_once_expires_at"} {
				err := migrate(db)
				cure := "ALTER INDEX " + index + " RENAME TO " + index + "_old"
				if err == nil || !strings.Contains(err.Error(), cure) {
					t.Fatalf("%v, want %s", err, cure)
				}
				stand.Equal(t, "made", db.Migrator().HasTable("gormlock_once"), false)
				stand.Must(t, db.Exec(cure).Error)
			}
			stand.Must(t, migrate(db))
			stand.Equal(t, "made", db.Migrator().HasIndex("gormlock_once", "gormlock_once_expires_at"), true)
		})
	}
}
