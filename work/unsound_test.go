package work_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/work"
)

// textless is an error that panics if it is a nil pointer.
type textless struct{ text string }

func (e *textless) Error() string { return e.text }

// causeless panics when it is unwrapped.
type causeless struct{ cause error }

func (e *causeless) Error() string { return "causeless" }
func (e *causeless) Unwrap() error { return e.cause }

// An error whose methods panic fails its job, and the worker goes on.
func TestHandler_errorWithoutAText(t *testing.T) {
	t.Parallel()
	db := open(t)
	const panicked = "panicked: runtime error: invalid memory address"
	cases := map[string]struct {
		err          error
		state, error string
	}{
		"typed nil":       {(*textless)(nil), "later", "textless " + panicked},
		"not unwrapped":   {fmt.Errorf("wrapped: %w", (*causeless)(nil)), "later", panicked},
		"joined":          {errors.Join(errors.New("a"), (*textless)(nil)), "later", panicked},
		"Later":           {work.Later(time.Hour, (*textless)(nil)), "later", "textless " + panicked},
		"Dead":            {work.Dead((*causeless)(nil)), "dead", "causeless " + panicked},
		"Dead in another": {fmt.Errorf("x: %w", work.Dead((*textless)(nil))), "dead", "textless " + panicked},
		"an error":        {errors.New("no"), "later", "no"},
	}
	for name := range cases {
		enqueue(t, db, name)
	}
	w := worker(t, db, func(_ context.Context, m *Mail) error { return cases[m.Text].err }, work.Backoff(func(int) time.Duration { return time.Hour }))
	if n := drain(t, w); n != len(cases) {
		t.Errorf("%d attempts", n)
	}
	var mails []Mail
	must(t, db.Find(&mails).Error)
	for _, m := range mails {
		if want := cases[m.Text]; m.State != want.state || !strings.Contains(m.LastError, want.error) {
			t.Errorf("%s: %s, %q", m.Text, m.State, m.LastError)
		}
		if counted := m.Attempts == 1; counted != (m.Text != "Later") {
			t.Errorf("%s: %d attempts", m.Text, m.Attempts)
		}
	}
}
