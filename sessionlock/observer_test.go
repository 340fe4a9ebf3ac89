package sessionlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/observe"
	"github.com/gormlock/gormlock/sessionlock"
)

// An observer that hears of an acquisition hears of its end, once, however it ends.
func TestObserver_hearsOfEveryEndOnce(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		statement string
		action    wiretap.Action
		end       func(t *testing.T, s *stage, l *sessionlock.Lock)
		want      observe.Kind
		err       error
	}{
		"lost, then released": {end: func(t *testing.T, s *stage, l *sessionlock.Lock) {
			t.Helper()
			s.proxy.Cut()
			assertLost(t, s.m, l)
		}, want: observe.Lost, err: sessionlock.ErrLost},
		"lost on the way back": {statement: "pg_advisory_unlock_shared(k)", action: wiretap.CutRequest, end: func(t *testing.T, _ *stage, l *sessionlock.Lock) {
			t.Helper()
			if err := l.Release(t.Context()); !errors.Is(err, sessionlock.ErrLost) {
				t.Errorf("Release says %v", err)
			}
		}, want: observe.Lost, err: sessionlock.ErrLost},
		"not confirmed in time": {statement: "pg_advisory_unlock_shared(k)", action: wiretap.HoldRequest, end: func(t *testing.T, s *stage, l *sessionlock.Lock) {
			t.Helper()
			if err := l.Release(canceled); !errors.Is(err, context.Canceled) {
				t.Errorf("Release says %v", err)
			}
			s.awaitHeld()
			s.proxy.Resume()
		}, want: observe.Released, err: context.Canceled},
		"released twice": {end: func(t *testing.T, _ *stage, l *sessionlock.Lock) {
			t.Helper()
			release(t, l)
			if err := l.Release(t.Context()); !errors.Is(err, sessionlock.ErrReleased) {
				t.Errorf("Release says %v", err)
			}
		}, want: observe.Released},
		"closed": {end: func(t *testing.T, s *stage, _ *sessionlock.Lock) {
			t.Helper()
			if err := s.m.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}, want: observe.Lost, err: sessionlock.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &pgtest.Hearer{}
			statement := c.statement
			if statement == "" {
				statement = "no such statement"
			}
			s := newStage(t, statement, c.action, false, sessionlock.Observer(r))
			c.end(t, s, acquire(t, s.m, s.key, sessionlock.Shared()))
			if err := s.m.Close(t.Context()); err != nil { // nothing is reported after that
				t.Log(err)
			}
			if told := r.Events(); len(told) != 2 || told[1].Kind != c.want || told[1].Mode != "shared" || !errors.Is(told[1].Err, c.err) {
				t.Errorf("got %+v", told)
			}
		})
	}
}

func TestObserver_isToldWhatHappens(t *testing.T) {
	t.Parallel()
	r := &pgtest.Hearer{}
	m := openAt(t, migrate(t), sessionlock.Observer(r), sessionlock.Owner("me"))
	k := pgtest.Key(t)
	l := acquire(t, m, k, sessionlock.Fenced())
	if _, err := m.TryAcquire(t.Context(), k); !errors.Is(err, sessionlock.ErrNotAcquired) {
		t.Error(err)
	}
	if _, err := m.Acquire(t.Context(), k, sessionlock.Timeout(time.Millisecond)); !errors.Is(err, sessionlock.ErrLockTimeout) {
		t.Error(err)
	}
	release(t, l)
	lost := acquire(t, m, k)
	pgtest.Kill(t, lost.PID())
	assertLost(t, m, lost)

	// Lost is reported at the same time as the channel is closed, not before.
	events := r.Heard(t, observe.Acquired, observe.NotAcquired, observe.TimedOut, observe.Released, observe.Acquired, observe.Lost)
	for _, e := range events {
		if e.Source != "sessionlock" || e.Owner != "me" || e.Key != k.String() || e.Mode != "exclusive" {
			t.Errorf("%v: %+v", e.Kind, e)
		}
	}
	if first := events[0]; first.Token != l.Token().Number || first.Wait <= 0 {
		t.Errorf("acquired: %+v", first)
	}
	if released := events[3]; released.Held <= 0 || released.Token != l.Token().Number {
		t.Errorf("released: %+v", released)
	}
	if last := events[5]; !errors.Is(last.Err, sessionlock.ErrLost) || last.Held <= 0 {
		t.Errorf("lost: %+v", last)
	}
}
