package sessionlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// A fleet that renames its keys in two steps keeps excluding itself, whichever of the two calls each process makes.
func TestRenamed_takesBoth(t *testing.T) {
	t.Parallel()
	m, rival := open(t), open(t)
	before, after := pgtest.Key(t, "before"), pgtest.Key(t, "after")
	renamed := lockkey.Renamed(after, before)
	for _, c := range []struct{ held, asked lockkey.Key }{
		{before, renamed}, {renamed, before}, {renamed, after}, {after, renamed}, {renamed, renamed}, {renamed, lockkey.Renamed(before, after)},
	} {
		err := m.Do(t.Context(), c.held, func(context.Context) error {
			for _, k := range c.held.Keys() {
				if !pgtest.Held(t, k) {
					t.Errorf("Do of %s does not hold %s", c.held, k)
				}
			}
			return rival.Do(t.Context(), c.asked, func(context.Context) error { panic("it runs") }, sessionlock.Try())
		})
		if !errors.Is(err, sessionlock.ErrNotAcquired) {
			t.Errorf("%s, then %s: %v", c.held, c.asked, err)
		}
		all, err := m.AcquireAll(t.Context(), c.held, c.held)
		if err != nil || len(all) != len(c.held.Keys()) {
			t.Fatalf("AcquireAll of %s: %d locks, %v", c.held, len(all), err)
		}
		began := time.Now()
		err = rival.Do(t.Context(), c.asked, func(context.Context) error { panic("it runs") }, sessionlock.Timeout(50*time.Millisecond))
		if !errors.Is(err, sessionlock.ErrLockTimeout) || !strings.Contains(err.Error(), "after 50ms") || time.Since(began) > 10*time.Second {
			t.Errorf("%s, then %s: %v", c.held, c.asked, err)
		}
		if err := all.Release(t.Context()); err != nil {
			t.Error(err)
		}
		pgtest.AssertFree(t, renamed.Keys()...) // a grant that comes after a rival gave up is given back
	}
}

// Calls for one lock refuse the key, and name the calls that take both locks. A token of one key says nothing about holders of the other.
func TestRenamed_refusals(t *testing.T) {
	t.Parallel()
	m := open(t)
	k := lockkey.Renamed(pgtest.Key(t, "a"), pgtest.Key(t, "b"))
	_, acquired := m.Acquire(t.Context(), k)
	_, tried := m.TryAcquire(t.Context(), k)
	fenced := m.Do(t.Context(), k, func(context.Context) error { panic("it runs") }, sessionlock.Fenced())
	for err, cure := range map[error]string{acquired: "Do and AcquireAll take both", tried: "Do and AcquireAll take both", fenced: "see lockkey.Renamed"} {
		if !errors.Is(err, sessionlock.ErrOption) || !strings.Contains(err.Error(), cure) {
			t.Errorf("got %v", err)
		}
	}
	if err := m.Do(t.Context(), k, nil, sessionlock.Timeout(-1)); !errors.Is(err, sessionlock.ErrOption) {
		t.Errorf("got %v", err)
	}
}

// The loss of either lock ends the work. An acquisition under the ctx of its holder is refused at once.
func TestRenamed_isOneLockForItsHolder(t *testing.T) {
	t.Parallel()
	m := open(t)
	k := lockkey.Renamed(pgtest.Key(t, "a"), pgtest.Key(t, "b"))
	err := m.Do(t.Context(), k, func(ctx context.Context) error {
		for _, again := range append(k.Keys(), k) {
			if err := m.Do(ctx, again, func(context.Context) error { panic("it runs") }); !errors.Is(err, sessionlock.ErrReentrant) {
				t.Errorf("%s again: %v", again, err)
			}
		}
		pgtest.Kill(t, pgtest.Locks(t, k.Keys()[1])[0].PID)
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), sessionlock.ErrLost) {
			t.Errorf("the work ended by %v", context.Cause(ctx))
		}
		return nil
	})
	if !errors.Is(err, sessionlock.ErrLost) {
		t.Errorf("a loss is hidden: %v", err)
	}
}
