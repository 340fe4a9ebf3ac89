package work_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

// In a dry run nothing is made and nothing panics.
func TestMigrate_inADryRun(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*gorm.DB) error{
		"no table": func(*gorm.DB) error { return nil }, "a table": func(db *gorm.DB) error { return work.Migrate(db, &Mail{}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
			must(t, before(db))
			dry := db.Session(&gorm.Session{DryRun: true})
			must(t, work.Migrate(dry, &Mail{}, work.OnePer("account_id")))
			var made int64
			must(t, db.Raw("SELECT count(*) FROM pg_indexes WHERE schemaname = current_schema() AND indexname LIKE '%one%'").Scan(&made).Error)
			if made > 0 {
				t.Errorf("%d indexes were made", made)
			}
			if _, err := work.New(dry, (&texts{}).handle); !errors.Is(err, gormlock.ErrOption) {
				t.Errorf("New: %v", err)
			}
			if _, err := work.Stats(t.Context(), dry, &Mail{}); !errors.Is(err, gorm.ErrDryRunModeUnsupported) {
				t.Errorf("Stats: %v", err)
			}
			if _, err := work.Requeue(t.Context(), dry, &Mail{}, 1); !errors.Is(err, gorm.ErrDryRunModeUnsupported) {
				t.Errorf("Requeue: %v", err)
			}
		})
	}
}

// If a plugin makes queries fail, Migrate and New return its error.
func TestMigrate_whereAPluginFails(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
	must(t, work.Migrate(db, &Mail{}))
	refused := errors.New("the plugin refuses")
	must(t, db.Callback().Row().Before("gorm:row").Register("refuse", func(db *gorm.DB) {
		if strings.Contains(db.Statement.SQL.String(), "pg_index i WHERE") {
			_ = db.AddError(refused)
		}
	}))
	if err := work.Migrate(db, &Mail{}); !errors.Is(err, refused) {
		t.Errorf("Migrate: %v", err)
	}
	if _, err := work.New(db, (&texts{}).handle); !errors.Is(err, refused) {
		t.Errorf("New: %v", err)
	}
}

// In a dry run Complete completes nothing, and does not complain that the job is not running.
func TestComplete_inADryRun(t *testing.T) {
	t.Parallel()
	db := open(t)
	m := reload(t, db, enqueue(t, db, "x")[0].ID)
	was := *m
	must(t, work.Complete(db.Session(&gorm.Session{DryRun: true}), m))
	if *m != was || reload(t, db, m.ID).State != "ready" {
		t.Errorf("%+v", m)
	}
	drain(t, worker(t, db, func(_ context.Context, m *Mail) error { // that handler has not called Complete
		return work.Complete(db.Session(&gorm.Session{DryRun: true}), m)
	}))
	if now := reload(t, db, m.ID); now.State != "done" || now.Attempts != 1 {
		t.Errorf("%+v", now)
	}
}

// A wrong job or option of work is ErrOption. The text of ErrOption is about locks, so errors of work do not contain it.
func TestErrors_textOfAnOption(t *testing.T) {
	t.Parallel()
	db := open(t)
	_, workers := work.New(db, (&texts{}).handle, work.Workers(0))
	_, given := work.New(db.Where("1=1"), (&texts{}).handle)
	_, none := work.New(db, (&texts{}).handle, nil)
	for _, err := range []error{workers, given, none, work.Enqueue(db, &Mail{Job: work.Job{State: "done"}}), work.Enqueue[Mail](db, nil), work.Migrate(db, 1)} {
		if !errors.Is(err, gormlock.ErrOption) || !strings.HasPrefix(err.Error(), "gormlock: work: ") || strings.Contains(err.Error(), "lock option") {
			t.Errorf("%v", err)
		}
	}
}
