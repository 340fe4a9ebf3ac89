package work_test

import (
	"context"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

// Migrate refuses a table that another tool has made and in which jobs would get lost. Its error has the statements that fix it.
func TestMigrate_refusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	for name, try := range map[string]struct{ id, runAt, until string }{
		"run_at without a zone":        {"bigserial PRIMARY KEY", "timestamp NOT NULL DEFAULT now()", "timestamptz"},
		"claimed_until without a zone": {"bigserial PRIMARY KEY", "timestamptz NOT NULL DEFAULT now()", "timestamp(3)"},
		"no key":                       {"bigserial", "timestamptz NOT NULL DEFAULT now()", "timestamptz"},
		"no default":                   {"bigint UNIQUE", "timestamptz NOT NULL DEFAULT now()", "timestamptz"},
		"neither":                      {"bigint", "timestamptz NOT NULL DEFAULT now()", "timestamptz"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
			must(t, work.Migrate(db, &Mail{}))
			const drop = "ALTER TABLE mails DROP COLUMN id, DROP COLUMN run_at, DROP COLUMN claimed_until"
			must(t, db.Exec(drop).Error)
			must(t, db.Exec("ALTER TABLE mails ADD COLUMN id "+try.id+", ADD COLUMN run_at "+try.runAt+", ADD COLUMN claimed_until "+try.until).Error)
			err := work.Migrate(db, &Mail{})
			if err == nil {
				t.Fatal("Migrate takes it")
			}
			for ; err != nil; err = work.Migrate(db, &Mail{}) { // one cure after the other
				if _, failed := work.New(db, (&texts{}).handle); failed == nil {
					t.Error("New takes it")
				}
				cure(t, db, err)
			}
			enqueue(t, db, "x", "y")
			var done texts
			drain(t, worker(t, db, done.handle, work.Workers(1)))
			done.mustBe(t, "x", "y")
		})
	}
}

// cure executes what an error of Migrate advises.
func cure(t *testing.T, db *gorm.DB, err error) {
	t.Helper()
	at := strings.Index(err.Error(), "ALTER ")
	if at < 0 {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(err.Error()[at:], ", or the zone")
	must(t, db.Exec(text).Error)
}

// An old table was renamed, with its indexes. The new table gets its own indexes, or Migrate says what is in the way.
func TestMigrate_afterARename(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]work.Option{"plain": nil, "OnePer": {work.OnePer("account_id")}, "FairBy": {work.FairBy("account_id")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
			must(t, work.Migrate(db, &Mail{}, opts...))
			must(t, db.Exec("ALTER TABLE mails RENAME TO mails_2026").Error)
			err := work.Migrate(db, &Mail{}, opts...)
			if err == nil || db.Migrator().HasTable("mails") {
				t.Fatalf("%v", err)
			}
			if !strings.Contains(err.Error(), "mails_2026_work_ready") {
				t.Error(err)
			}
			cure(t, db, err)
			must(t, work.Migrate(db, &Mail{}, opts...))
			_, err = work.New(db, func(context.Context, *Mail) error { return nil }, opts...)
			must(t, err)
		})
	}
}

// If a trigger moves the version in each update, each renewal of a lease does too, and then no handler could complete its job.
func TestMigrate_refusesAVersionTrigger(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"as it is made": "",
		"renamed":       "ALTER TRIGGER gormlock_version_mails ON mails RENAME TO moves",
		"always":        "ALTER TABLE mails ENABLE ALWAYS TRIGGER gormlock_version_mails",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			must(t, db.Exec(gormlock.VersionTrigger("mails", "version")).Error)
			if change != "" {
				must(t, db.Exec(change).Error)
			}
			err := work.Migrate(db, &Mail{})
			if _, failed := work.New(db, (&texts{}).handle); err == nil || failed == nil || err.Error() != failed.Error() {
				t.Fatalf("Migrate: %v, New: %v", err, failed)
			}
			at := strings.Index(err.Error(), "DROP TRIGGER ")
			must(t, db.Exec(err.Error()[at:]).Error)
			must(t, work.Migrate(db, &Mail{}))
			worker(t, db, (&texts{}).handle)
		})
	}
	t.Run("disabled", func(t *testing.T) {
		t.Parallel()
		db := open(t)
		must(t, db.Exec(gormlock.VersionTrigger("mails", "version")).Error)
		must(t, db.Exec("ALTER TABLE mails DISABLE TRIGGER gormlock_version_mails").Error)
		must(t, work.Migrate(db, &Mail{}))
		worker(t, db, (&texts{}).handle)
	})
}

// OnePer cannot begin while two jobs of one value run: the error names the cure, which works.
func TestMigrate_onePerWhileTwoRun(t *testing.T) {
	t.Parallel()
	for name, translates := range map[string]bool{"": false, "with TranslateError": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openWith(t, pgtest.Plugin(gormlock.New()), pgtest.Config(func(c *gorm.Config) { c.TranslateError = translates }))
			must(t, db.Exec("INSERT INTO mails (account_id, text) VALUES (1, 'x'), (1, 'y')").Error)
			begun, over := make(chan bool, 2), make(chan struct{})
			end := start(t, worker(t, db, func(context.Context, *Mail) error {
				begun <- true
				<-over
				return nil
			}))
			<-begun
			<-begun
			onePer := work.OnePer("account_id")
			if err := work.Migrate(db, &Mail{}, onePer); err == nil || !strings.Contains(err.Error(), "stop the workers") || !strings.Contains(err.Error(), `"account_id"`) {
				t.Error(err)
			}
			close(over)
			must(t, end())
			must(t, work.Migrate(db, &Mail{}, onePer))
		})
	}
}
