package inspect_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

type Mail struct{ work.Job }

func (Mail) TableName() string { return "postbox" }

type Unheard struct{ work.Job }

type Letter struct {
	work.Job
	Gone gorm.DeletedAt
}

// Jobs that workers skip are not counted here either, and an age is limited to what a duration can hold.
func TestJobs_areCountedAsByStats(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	if err := work.Migrate(db, &Letter{}); err != nil {
		t.Fatal(err)
	}
	if err := db.Exec("INSERT INTO letters (state, gone, last_error) VALUES ('ready', NULL, ''), ('ready', now(), ''), ('dead', now(), 'deleted')").Error; err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"now() - interval '1 hour'", "'-infinity'", "'1700-01-01'", "'4000-01-01 BC'", "'infinity'"} {
		if err := db.Exec("UPDATE letters SET run_at = " + at).Error; err != nil {
			t.Fatal(err)
		}
		v, err := inspect.Snapshot(t.Context(), pool, inspect.Jobs(&Letter{}))
		if err != nil || len(v.Jobs) != 1 || len(v.Unseen) > 0 {
			t.Fatalf("%s: %+v, %v", at, v, err)
		}
		q := v.Jobs[0]
		if q.Ready != 1 || q.Dead != 0 || q.Died != "" || at != "'infinity'" && q.Oldest < time.Hour || q.Oldest < 0 {
			t.Errorf("%s: %+v", at, q)
		}
	}
}

func TestJobs_areShownByQueue(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	if err := work.Migrate(db, &Mail{}); err != nil {
		t.Fatal(err)
	}
	err := db.Exec(`INSERT INTO postbox (queue, state, last_error, run_at) VALUES ('bulk', 'ready', '', now() - interval '1 hour'), ('bulk', 'done', '', now()),
		('default', 'dead', 'no <such> street', now()), ('default', 'later', '', now() + interval '1 hour')`).Error
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	for what, o := range map[string]inspect.Option{"a model": inspect.Jobs(&Mail{}), "a table": inspect.Jobs("postbox")} {
		v, err := inspect.Snapshot(t.Context(), pool, o)
		if err != nil || len(v.Jobs) != 2 {
			t.Fatalf("%s: %+v, %v", what, v, err)
		}
		bulk, other := v.Jobs[0], v.Jobs[1]
		if bulk.Table != "postbox" || bulk.Queue != "bulk" || bulk.Ready != 1 || bulk.Oldest < time.Hour || bulk.Died != "" ||
			other.Dead != 1 || other.Later != 1 || other.Oldest != 0 || other.Died != "no <such> street" {
			t.Errorf("%s: %+v", what, v.Jobs)
		}
	}
	page := inspect.Handler(pool, inspect.Jobs(&Mail{}, &Unheard{}))
	defer func() { _ = page.Close() }()
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	for _, want := range []string{"<h2>Jobs</h2>", "postbox", ">60 min<", "no &lt;such&gt; street", "inspect_test.Unheard", "work.Migrate makes it"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if _, err := inspect.Snapshot(t.Context(), pool, inspect.Jobs(7)); err == nil {
		t.Error("Jobs(7) is taken")
	}
}

// A table whose columns have other names is not shown, and the page says why.
func TestJobs_ofOtherColumns(t *testing.T) {
	t.Parallel()
	type Parcel struct {
		work.Job `gorm:"embedded;embeddedPrefix:job_"`
	}
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	if err := work.Migrate(db, &Parcel{}); err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	v, err := inspect.Snapshot(t.Context(), pool, inspect.Jobs(&Parcel{}))
	if err != nil || len(v.Jobs) > 0 || len(v.Unseen) != 1 || !strings.Contains(v.Unseen[0], "gives the columns of work.Job other names than GORM's") {
		t.Errorf("%+v, %v", v, err)
	}
}
