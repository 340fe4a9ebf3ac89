package work_test

import (
	"context"
	"strings"
	"testing"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

// Settings that somebody gave to the table stay when a program starts again.
func TestMigrate_keepsStorageSettings(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	must(t, work.Migrate(db, &Mail{}))
	must(t, db.Exec("ALTER TABLE mails SET (fillfactor = 90, autovacuum_vacuum_cost_delay = 2)").Error)
	must(t, db.Exec("ALTER TABLE mails RESET (autovacuum_analyze_threshold)").Error)
	must(t, work.Migrate(db, &Mail{}))
	var set string
	must(t, db.Raw("SELECT reloptions::text FROM pg_class WHERE oid = 'mails'::regclass").Scan(&set).Error)
	for _, want := range []string{"fillfactor=90", "autovacuum_vacuum_cost_delay=2", "autovacuum_vacuum_threshold=5000", "autovacuum_analyze_threshold=5000"} {
		if !strings.Contains(set, want) {
			t.Errorf("%s is not in %s", want, set)
		}
	}
}

// New names the cure for an index that the server does not use.
func TestNew_refusesAnInvalidIndex(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	must(t, work.Migrate(db, &Mail{}))
	must(t, db.Exec("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'mails_work_later'::regclass").Error)
	_, err := work.New(db, func(context.Context, *Mail) error { return nil })
	if err == nil || !strings.Contains(err.Error(), `"mails_work_later" is not valid`) || !strings.Contains(err.Error(), "drop it, and call work.Migrate") {
		t.Error(err)
	}
}

type mailbox struct {
	ID      int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type boxedMail struct {
	work.Job
	BoxID *int64
	Box   *mailbox `gormlock:"root"`
}

type pairedMail struct {
	work.Job
	Pair string `gorm:"type:mail_pair"`
}

// New refuses models and tables whose jobs its workers could never claim, or would leave out.
func TestNew_refusesWhatCannotBeClaimed(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	must(t, db.AutoMigrate(&mailbox{}))
	must(t, work.Migrate(db, &boxedMail{}))
	if _, err := work.New(db, func(context.Context, *boxedMail) error { return nil }); err == nil || !strings.Contains(err.Error(), "has a root") {
		t.Error(err)
	}
	must(t, db.Exec("CREATE TYPE mail_pair AS (a int, b text)").Error)
	must(t, work.Migrate(db, &pairedMail{}, work.OnePer("pair")))
	if _, err := work.New(db, func(context.Context, *pairedMail) error { return nil }, work.OnePer("pair")); err == nil || !strings.Contains(err.Error(), "composite") {
		t.Error(err)
	}
	if _, err := work.New(db, func(context.Context, *pairedMail) error { return nil }); err == nil || !strings.Contains(err.Error(), "name its OnePer here too") {
		t.Error(err)
	}
}
