package work_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/observe"
	"github.com/gormlock/gormlock/work"
)

func TestNew_refusesBadOptions(t *testing.T) {
	t.Parallel()
	db := open(t)
	handle := func(context.Context, *Mail) error { return nil }
	for name, o := range map[string]work.Option{
		"nil": nil, "Workers(0)": work.Workers(0), "Workers(-1)": work.Workers(-1), "Queues": work.Queues(), "Queues of no name": work.Queues("a", ""),
		"Lease(0)": work.Lease(0), "Poll(0)": work.Poll(0), "Poll(-1)": work.Poll(-time.Second), "Grace(-1)": work.Grace(-1), "Backoff(nil)": work.Backoff(nil),
		"OnePer of nothing": work.OnePer(""), "FairBy of nothing": work.FairBy(""), "OnePer of no column": work.OnePer("acount_id"), "FairBy of no column": work.FairBy("acount_id"),
	} {
		w, err := work.New(db, handle, o)
		if w != nil || !errors.Is(err, gormlock.ErrOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := work.New[Mail](db, nil); !errors.Is(err, gormlock.ErrOption) {
		t.Errorf("a nil handler: %v", err)
	}
	if _, err := work.New(nil, handle); err == nil {
		t.Error("a nil db is taken")
	}
	if _, err := work.New(pgtest.Open(t), handle); !errors.Is(err, gormlock.ErrNotInstalled) {
		t.Errorf("without the plugin: %v", err)
	}
	if _, err := work.New(pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New(gormlock.WithoutVersions()))), handle); !errors.Is(err, gormlock.ErrOption) {
		t.Errorf("without versions: %v", err)
	}
	o := work.Queues("a")
	for range 2 {
		if _, err := work.New(db, handle, o, work.Observer(observe.Multi())); err != nil {
			t.Error(err)
		}
	}
}

type NoJob struct{ ID int64 }

type OtherKey struct {
	work.Job
	Part int64 `gorm:"primaryKey"`
}

type AskedJob struct {
	work.Job
	Sent bool `gorm:"column:sent?"`
}

func TestModels_withoutJobAreRefused(t *testing.T) {
	t.Parallel()
	db := open(t)
	check := func(what string, err error, want string) {
		t.Helper()
		if !errors.Is(err, gormlock.ErrOption) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	const embed = "embed work.Job"
	_, err := work.New(db, func(context.Context, *NoJob) error { return nil })
	check("New", err, embed)
	check("Migrate", work.Migrate(db, &NoJob{}), embed)
	check("Migrate of a value", work.Migrate(db, Mail{}), "pointer")
	check("Enqueue", work.Enqueue(db, &NoJob{}), embed)
	check("Enqueue of nil", work.Enqueue[Mail](db, nil), "nil")
	check("Complete", work.Complete(db, &NoJob{}), embed)
	check("Complete of nil", work.Complete[Mail](db, nil), "nil")
	check("Migrate of nil", work.Migrate(db, (*Mail)(nil)), "nil")
	check("Migrate of an untyped nil", work.Migrate(db, nil), "nil")
	check("another key", work.Migrate(db, &OtherKey{}), "primary key")
	check("a name that is taken for a placeholder", work.Migrate(db, &AskedJob{}), "question mark")
	_, err = work.Stats(t.Context(), db, &NoJob{})
	check("Stats", err, embed)
	_, err = work.Requeue(t.Context(), db, &NoJob{}, 1)
	check("Requeue", err, embed)
	check("Enqueue of a job that is done", work.Enqueue(db, &Mail{Job: work.Job{State: "done"}}), "State")
}

// PostgreSQL would store a time that it cannot represent as another time, so the job could begin at once.
func TestEnqueue_runAtThatCannotBeStored(t *testing.T) {
	t.Parallel()
	db := open(t)
	for _, at := range []time.Time{time.Unix(1<<63-1, 0), time.Unix(1<<60, 0), time.Date(294247, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-5000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if err := work.Enqueue(db, &Mail{}, &Mail{Job: work.Job{RunAt: at}}); !errors.Is(err, gormlock.ErrOption) || !strings.Contains(err.Error(), "RunAt") {
			t.Errorf("%s: %v", at, err)
		}
	}
	last := time.Date(294246, 12, 31, 23, 59, 59, 0, time.UTC)
	job := &Mail{Job: work.Job{RunAt: last}}
	must(t, work.Enqueue(db, job))
	if stored := reload(t, db, job.ID); !stored.RunAt.Equal(last) || stored.State != "later" {
		t.Errorf("stored as %s, %s", stored.RunAt, stored.State)
	}
	if got := states(t, db); len(got) != 1 || got["later"] != 1 {
		t.Errorf("there are %v", got)
	}
}

func TestNew_namesTheCureOfATable(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	handle := func(context.Context, *Mail) error { return nil }
	check := func(what, want string, opts ...work.Option) {
		t.Helper()
		if _, err := work.New(db, handle, opts...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	check("no table", "the table mails does not exist: call work.Migrate")
	must(t, db.AutoMigrate(&Mail{}))
	check("no index", "has no index mails_work_ready: call work.Migrate")
	must(t, work.Migrate(db, &Mail{}))
	check("no index of OnePer", "no index for OnePer: call work.Migrate with the same OnePer", work.OnePer("account_id"))
	check("no index of FairBy", "no index for FairBy: call work.Migrate with the same FairBy", work.FairBy("AccountID"))
	must(t, db.Exec("ALTER TABLE mails DROP COLUMN text").Error)
	check("no column", "has no column text: call work.Migrate")
	must(t, work.Migrate(db, &Mail{}, work.OnePer("account_id"), work.FairBy("account_id")))
	if _, err := work.New(db, handle, work.OnePer("account_id")); err != nil {
		t.Error(err)
	}
	check("a worker that does not know of it", "mails_work_one_running_account_id")
	tx := db.Begin()
	defer tx.Rollback()
	if _, err := work.New(tx, handle); err == nil || !strings.Contains(err.Error(), "gorm.Open") {
		t.Errorf("in a transaction: %v", err)
	}
}

// An old table gets what it lacks, and keeps its rows. Processes that start together do not disturb each other.
func TestMigrate_addsWhatIsMissing(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	must(t, db.Exec("CREATE TABLE mails (id bigserial PRIMARY KEY, text text)").Error)
	must(t, db.Exec("INSERT INTO mails (text) VALUES ('old')").Error)
	errs := make(chan error)
	for range 4 {
		go func() { errs <- work.Migrate(db, &Mail{}) }()
	}
	for range 4 {
		must(t, <-errs)
	}
	var seen texts
	drain(t, worker(t, db, seen.handle))
	seen.mustBe(t, "old")
	must(t, db.Transaction(func(tx *gorm.DB) error { return work.Migrate(tx, &Mail{}) }))
	var settings string
	must(t, db.Raw("SELECT array_to_string(reloptions, ' ') FROM pg_class WHERE oid = 'mails'::regclass").Scan(&settings).Error)
	for _, want := range []string{"fillfactor=", "autovacuum_vacuum_threshold="} {
		if !strings.Contains(settings, want) {
			t.Errorf("no %s in %s", want, settings)
		}
	}
}

type Soft struct {
	work.Job
	DeletedAt gorm.DeletedAt
}

func (Soft) TableName() string {
	return "soft_jobs_with_a_name_that_is_nearly_too_long_for_a_postgresql"
}

func TestDrain_leavesWhatIsDeletedSoftly(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	must(t, work.Migrate(db, &Soft{}))
	jobs := []*Soft{{}, {}, {}}
	must(t, work.Enqueue(db, jobs...))
	must(t, db.Delete(&Soft{}, jobs[1].ID).Error)
	w, err := work.New(db, func(context.Context, *Soft) error { return nil })
	must(t, err)
	if n, err := w.Drain(t.Context()); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// Checked has a job that PostgreSQL refuses, and one whose hook fails after it was inserted.
type Checked struct {
	work.Job
	Text string `gorm:"check:text <> 'bad'"`
}

func (c *Checked) AfterCreate(*gorm.DB) error {
	if c.Text == "late" {
		return errors.New("late")
	}
	return nil
}

func TestEnqueue_insertsAllOrNone(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"bad", "late"} {
		for _, n := range []int{1, 2, 1000} {
			for name, opts := range map[string][]pgtest.Option{"default": nil, "SkipDefaultTransaction": {pgtest.SkipDefaultTransaction()}} {
				t.Run(fmt.Sprintf("%s, %d jobs, %s", kind, n, name), func(t *testing.T) {
					t.Parallel()
					db := pgtest.Open(t, append(opts, pgtest.Plugin(gormlock.New()), pgtest.Schema())...)
					must(t, work.Migrate(db, &Checked{}))
					var jobs []*Checked
					for range n {
						jobs = append(jobs, &Checked{Text: "good"})
					}
					last := jobs[n*7/10]
					last.Text = kind
					if err := work.Enqueue(db, jobs...); err == nil {
						t.Error("no error")
					}
					stored := func() (n int64) {
						must(t, db.Model(&Checked{}).Count(&n).Error)
						return n
					}
					if got := stored(); got != 0 {
						t.Errorf("%d jobs are stored", got)
					}
					last.Text = "good"
					must(t, work.Enqueue(db, jobs...))
					if got := stored(); got != int64(n) {
						t.Errorf("%d jobs are stored at the second try", got)
					}
				})
			}
		}
	}
}

// Fields that count up must have room to do so.
func TestEnqueue_refusesWhatCanNeverRun(t *testing.T) {
	t.Parallel()
	db := open(t)
	for name, j := range map[string]work.Job{
		"Attempts": {Attempts: math.MaxInt}, "negative Attempts": {Attempts: -1}, "Version": {Version: math.MaxInt64}, "another Version": {Version: 7},
	} {
		if err := work.Enqueue(db, &Mail{Job: j}); !errors.Is(err, gormlock.ErrOption) || !strings.Contains(err.Error(), "unset") {
			t.Errorf("%s: %v", name, err)
		}
	}
	var n int64
	if must(t, db.Model(&Mail{}).Count(&n).Error); n != 0 {
		t.Errorf("%d jobs were inserted", n)
	}
}
