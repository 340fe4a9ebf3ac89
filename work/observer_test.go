package work_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/observe"
	"github.com/gormlock/gormlock/work"
)

func TestObserver_isToldWhatBecomesOfJobs(t *testing.T) {
	t.Parallel()
	db := open(t)
	var told pgtest.Hearer
	mails := enqueue(t, db, "done", "failed", "later", "dead", "completed")
	must(t, db.Exec("INSERT INTO mails (text, state, attempts, claimed_until, claimed_by) VALUES ('abandoned', 'running', 20, now() - interval '1 s', 'gone')").Error)
	w := worker(t, db, func(ctx context.Context, m *Mail) error {
		switch m.Text {
		case "failed":
			return errors.New("no")
		case "later":
			return work.Later(time.Hour, nil)
		case "dead":
			return work.Dead(errors.New("no"))
		case "completed":
			return work.Complete(db.WithContext(ctx), m)
		}
		return nil
	}, work.Observer(&told))
	drain(t, w)
	want := map[string]bool{
		fmt.Sprint("claimed  ", 5): true, "taken over " + fmt.Sprint(mails[4].ID+1, 0): true, "dead " + fmt.Sprint(mails[4].ID+1, 0): true,
	}
	for i, kind := range []string{"done", "failed", "later", "dead", "done"} {
		want[kind+" "+fmt.Sprint(mails[i].ID, 0)] = true
	}
	eventually(t, "all events", func() bool {
		return len(told.Events()) >= len(want)
	})
	for _, e := range told.Events() {
		if what := e.Kind.String() + " " + e.Key + " " + fmt.Sprint(e.Rows); !want[what] && e.Rows == 0 || e.Source != "work" || e.Table != "mails" || e.Owner == "" {
			t.Errorf("%q: %+v", what, e)
		}
	}
	kinds := []observe.Kind{}
	for _, e := range told.Events() {
		kinds = append(kinds, e.Kind)
	}
	for _, k := range []observe.Kind{observe.Claimed, observe.Done, observe.Failed, observe.Later, observe.Dead, observe.TakenOver} {
		if !slices.Contains(kinds, k) {
			t.Errorf("nothing is told of %s", k)
		}
	}
}
