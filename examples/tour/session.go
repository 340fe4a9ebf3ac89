package main

import (
	"context"
	"errors"
	"time"

	"github.com/gormlock/gormlock/sessionlock"
)

func session(s *stage) error {
	s.say("A nightly import is longer than a transaction should be. Its lock is a session's, on a connection that no pool " +
		"lends to others, and the holder is told when it is lost:")
	s.code(`lock, err := manager.Acquire(ctx, key)
ctx, stop := lock.Bind(ctx) // ends with the lock`)
	one, err := sessionlock.OpenConfig(s.ctx, s.config.Copy(), sessionlock.Owner(s.name+" one"))
	if err != nil {
		return err
	}
	defer func() { _ = one.Close(s.ctx) }() // the connection goes with the tour
	two, err := sessionlock.OpenConfig(s.ctx, s.config.Copy(), sessionlock.Owner(s.name+" two"))
	if err != nil {
		return err
	}
	defer func() { _ = two.Close(s.ctx) }() // the connection goes with the tour

	key := s.key("nightly import")
	lock, err := one.Acquire(s.ctx, key)
	if err != nil {
		return err
	}
	_, err = two.TryAcquire(s.ctx, key)
	s.check(errors.Is(err, sessionlock.ErrNotAcquired), "one program holds it, another is told: %v", err)

	work, stop := lock.Bind(s.ctx)
	defer stop()
	began := time.Now()
	if _, err := s.outside.ExecContext(s.ctx, "select pg_terminate_backend($1)", lock.PID()); err != nil {
		return err
	}
	<-work.Done()
	cause := context.Cause(work)
	s.check(errors.Is(cause, sessionlock.ErrLost), "its session is killed; after %s its ctx has ended: %v", since(began), cause)
	next, err := two.Acquire(s.ctx, key, sessionlock.Timeout(10*time.Second))
	if err != nil {
		return err
	}
	s.check(next.Err() == nil, "and the other program has the lock")
	return next.Release(s.ctx)
}
