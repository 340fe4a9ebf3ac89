package migrations_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
	"github.com/gormlock/gormlock/work"
)

// at is the database that a DSN names.
func at(t *testing.T, dsn string) *gorm.DB {
	t.Helper()
	plugin := gormlock.New()
	t.Cleanup(func() { _ = plugin.Close() })
	return pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(plugin))
}

// through connects to it for dbresolver.
func through(t *testing.T, dsn string) gorm.Dialector {
	t.Helper()
	pool, err := pgtest.Open(t, pgtest.Through(dsn)).DB()
	stand.Must(t, err)
	return postgres.New(postgres.Config{Conn: pool})
}

// apart is a main database with a resolver that keeps models in another one.
func apart(t *testing.T, dsn string, datas ...any) (db, other *gorm.DB) {
	t.Helper()
	other = at(t, dsn)
	db = stand.Open(t)
	stand.Must(t, db.Use(dbresolver.Register(dbresolver.Config{Sources: []gorm.Dialector{through(t, dsn)}}, datas...)))
	return db, other
}

func inJobs(db *gorm.DB) *gorm.DB { return db.Clauses(dbresolver.Use("jobs"), dbresolver.Write) }

// A worker, its lists and what it stores are in one database. So jobs that dbresolver keeps in another one are refused, and not left running.
func TestResolver_jobsInAnotherDatabase(t *testing.T) {
	t.Parallel()
	db, other := apart(t, pgtest.Database(t), &errand{}, "jobs")
	stand.Must(t, work.Migrate(other, &errand{}))
	main := stand.Open(t)
	stand.Must(t, work.Migrate(main, &errand{}))
	ctx := t.Context()
	calls := map[string]func(*gorm.DB) error{
		"New":     func(db *gorm.DB) error { _, err := work.New(db, handled); return err },
		"Migrate": func(db *gorm.DB) error { return work.Migrate(db, &errand{}) },
		"Enqueue": func(db *gorm.DB) error { return work.Enqueue(db, &errand{}) },
		"Enqueue in a transaction": func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error { return work.Enqueue(tx, &errand{}) })
		},
		"Complete": func(db *gorm.DB) error { return work.Complete(db, &errand{Job: work.Job{ID: 1, Version: 1}}) },
		"Stats":    func(db *gorm.DB) error { _, err := work.Stats(ctx, db, &errand{}); return err },
		"Requeue":  func(db *gorm.DB) error { _, err := work.Requeue(ctx, db, &errand{}, 1); return err },
	}
	for name, call := range calls {
		for on, db := range map[string]*gorm.DB{"": db, " with Use": inJobs(db)} {
			if name+on == "Enqueue in a transaction with Use" { // which begins where the jobs are
				continue
			}
			if err := call(db); !errors.Is(err, gormlock.ErrOption) || !strings.Contains(err.Error(), "open a *gorm.DB on that database") {
				t.Errorf("%s%s: %v", name, on, err)
			}
		}
		if err := call(other); err != nil && name != "Complete" {
			t.Errorf("%s, on that database itself: %v", name, err)
		}
	}
}

// In a transaction that was begun where the jobs are, all calls work, and the workers there hear of its jobs.
func TestResolver_jobsInATransactionThere(t *testing.T) {
	t.Parallel()
	db, other := apart(t, pgtest.Database(t), &errand{}, "jobs")
	stand.Must(t, inJobs(db).Transaction(func(tx *gorm.DB) error { return work.Migrate(tx, &errand{}) }))
	if !other.Migrator().HasTable(&errand{}) || db.Migrator().HasTable("errands") {
		t.Error("Migrate has made the table elsewhere")
	}
	done := make(chan string, 1)
	w, err := work.New(other, func(_ context.Context, e *errand) error { done <- e.Text; return nil }, work.Poll(time.Hour))
	stand.Must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stand.Must(t, inJobs(db).Transaction(func(tx *gorm.DB) error {
		if err := work.Enqueue(tx, &errand{Text: "there"}); err != nil {
			return err
		}
		stats, err := work.Stats(t.Context(), tx, &errand{})
		stand.Equal(t, "queues", len(stats), 1)
		return err
	}))
	stand.Equal(t, "the job", <-done, "there")
	stop()
	stand.Must(t, <-ended)
}

// Another pool of the same database is no other database.
func TestResolver_jobsThroughAnotherPool(t *testing.T) {
	t.Parallel()
	for name, datas := range map[string][]any{"of the model": {&errand{}}, "of all": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.SchemaDSN(t)
			db := at(t, dsn)
			stand.Must(t, db.Use(dbresolver.Register(dbresolver.Config{Sources: []gorm.Dialector{through(t, dsn)}}, datas...)))
			stand.Must(t, work.Migrate(db, &errand{}))
			w, err := work.New(db, handled)
			stand.Must(t, err)
			stand.Must(t, work.Enqueue(db, &errand{}))
			stand.Must(t, db.Transaction(func(tx *gorm.DB) error { return work.Enqueue(tx, &errand{}) }))
			n, err := w.Drain(t.Context())
			stand.Must(t, err)
			stand.Equal(t, "jobs", n, 2)
		})
	}
}

// Another schema of the same database has other tables.
func TestResolver_jobsInAnotherSchema(t *testing.T) {
	t.Parallel()
	main := pgtest.SchemaDSN(t)
	t.Run("the other", func(t *testing.T) {
		db, other := at(t, main), stand.Open(t)
		stand.Must(t, db.Use(dbresolver.Register(dbresolver.Config{Sources: []gorm.Dialector{through(t, pgtest.SchemaDSN(t))}}, &errand{})))
		stand.Must(t, work.Migrate(other, &errand{}))
		if _, err := work.New(db, handled); !errors.Is(err, gormlock.ErrOption) {
			t.Error(err)
		}
	})
}

// parcel writes its table with the schema.
type parcel struct{ work.Job }

func (parcel) TableName() string { return "public.parcels" }

// dbresolver knows a table by its name alone.
func TestResolver_tableWithItsSchema(t *testing.T) {
	t.Parallel()
	db, other := apart(t, pgtest.Database(t), &parcel{})
	stand.Must(t, work.Migrate(other, &parcel{}))
	if _, err := work.New(db, func(context.Context, *parcel) error { return nil }); !errors.Is(err, gormlock.ErrOption) {
		t.Error(err)
	}
	if err := gormlock.AutoMigrate(db, &parcel{}); !errors.Is(err, gormlock.ErrOption) {
		t.Error(err)
	}
	stand.Must(t, gormlock.Check(db, &parcel{}))
}

// letter and stamp write their tables with a schema that is in no search_path, and whose name is quoted.
type (
	letter struct{ work.Job }
	stamp  struct {
		ID      int64
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
)

func (letter) TableName() string { return "Post.letters" }
func (stamp) TableName() string  { return "Post.stamps" }

// A table with its schema is where that is, whatever the search_path, also before it is there.
func TestResolver_tableWithItsSchemaThatIsNotThereYet(t *testing.T) {
	t.Parallel()
	for name, elsewhere := range map[string]bool{"another pool": false, "another database": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.Database(t)
			source := dsn
			if elsewhere {
				source = pgtest.Database(t)
			}
			db := at(t, dsn)
			for _, each := range []string{dsn, source} {
				stand.Must(t, at(t, each).Exec(`CREATE SCHEMA IF NOT EXISTS "Post"; CREATE SCHEMA IF NOT EXISTS other`).Error)
			}
			stand.Must(t, db.Use(dbresolver.Register(dbresolver.Config{Sources: []gorm.Dialector{through(t, source+"&search_path=other")}})))
			for call, migrate := range map[string]func(db *gorm.DB) error{
				"AutoMigrate":  func(db *gorm.DB) error { return gormlock.AutoMigrate(db, &stamp{}) },
				"work.Migrate": func(db *gorm.DB) error { return work.Migrate(db, &letter{}) },
				"Stats": func(db *gorm.DB) error {
					_, err := work.Stats(t.Context(), db, &letter{})
					return err
				},
			} {
				if call == "Stats" && !elsewhere {
					stand.Must(t, work.Migrate(db, &letter{}))
				}
				if err := migrate(db); !elsewhere && err != nil || elsewhere && !errors.Is(err, gormlock.ErrOption) {
					t.Errorf("%s: %v", call, err)
				}
			}
		})
	}
}

// Check looks where the writes of a model go.
func TestResolver_checkOfAModelElsewhere(t *testing.T) {
	t.Parallel()
	db, other := apart(t, pgtest.Database(t), &stand.Account{}, "jobs")
	if err := gormlock.Check(db, &stand.Account{}); err == nil {
		t.Error("the table is not there yet")
	}
	if err := gormlock.AutoMigrate(db, &stand.Account{}); !errors.Is(err, gormlock.ErrOption) || db.Migrator().HasTable("accounts") {
		t.Errorf("AutoMigrate made a table where nobody writes: %v", err)
	}
	stand.Must(t, gormlock.AutoMigrate(inJobs(db), &stand.Account{}))
	if !other.Migrator().HasTable("accounts") {
		t.Error("AutoMigrate has made the table elsewhere")
	}
	stand.Must(t, gormlock.Check(db, &stand.Account{}))
	stand.Must(t, gormlock.Check(inJobs(db), &stand.Account{}))
	stand.Must(t, other.Migrator().DropColumn(&stand.Account{}, "version"))
	if err := gormlock.Check(db, &stand.Account{}); err == nil || !strings.Contains(err.Error(), "no column version") {
		t.Error(err)
	}
}

// What is given a database by Use works there.
func TestResolver_useOfADatabase(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	other, db := at(t, dsn), stand.Open(t)
	stand.Must(t, db.Use(dbresolver.Register(dbresolver.Config{
		Sources: []gorm.Dialector{through(t, dsn)}, Replicas: []gorm.Dialector{through(t, pgtest.Database(t))},
	}, "jobs")))
	for name, db := range map[string]*gorm.DB{"Use": db.Clauses(dbresolver.Use("jobs")), "Use and Write": inJobs(db)} {
		stand.Must(t, gormlock.MigrateOnce(db))
		if !other.Migrator().HasTable("gormlock_once") {
			t.Errorf("%s: MigrateOnce has made its table elsewhere", name)
		}
		stand.Must(t, other.Exec("INSERT INTO gormlock_once (key, created_at) VALUES ('old', '2020-01-01')").Error)
		n, err := gormlock.SweepOnce(db, time.Hour, 10)
		stand.Must(t, err)
		stand.Equal(t, name+": keys swept", n, 1)
		stand.Must(t, gormlock.MigrateAll(db))
		if !other.Migrator().HasTable("gormlock_lease") {
			t.Errorf("%s: MigrateAll has made its tables elsewhere", name)
		}
		stand.Must(t, gormlock.AutoMigrate(db, &stand.Account{}))
		stand.Must(t, gormlock.Check(db, &stand.Account{}))
		stand.Must(t, other.Migrator().DropTable(&stand.Account{}, "gormlock_once", "gormlock_lease"))
	}
	if db.Migrator().HasTable("gormlock_once") || db.Migrator().HasTable("gormlock_lease") || db.Migrator().HasTable("accounts") {
		t.Error("tables are in the main database")
	}
}
