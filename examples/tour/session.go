package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

func session(s *stage) error {
	s.say("A nightly import is longer than a transaction should be. Its lock is a session's, on a connection that no pool " +
		"lends to others, and the holder is told when it is lost:")
	s.code(`lock, err := manager.Acquire(ctx, key)
ctx, stop := lock.Bind(ctx) // ends with the lock`)
	one, two, end, err := s.twoPrograms()
	if err != nil {
		return err
	}
	defer end()

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

// program is one of several programs that take session locks.
func (s *stage) program(name string) (*sessionlock.Manager, error) {
	return sessionlock.OpenConfig(s.ctx, s.config.Copy(), sessionlock.Owner(s.name+" "+name))
}

// twoPrograms are two of them, until end is called.
func (s *stage) twoPrograms() (one, two *sessionlock.Manager, end func(), err error) {
	if one, err = s.program("one"); err != nil {
		return nil, nil, nil, err
	}
	if two, err = s.program("two"); err != nil {
		_ = one.Close(s.ctx)
		return nil, nil, nil, err
	}
	return one, two, func() { _, _ = one.Close(s.ctx), two.Close(s.ctx) }, nil // the connections go with the tour
}

// several lets two programs name two locks in different order.
func several(s *stage) error {
	s.say("Two programs need the same two locks. In transactions the server sees who waits in a circle; between locks of " +
		"sessions nobody does. AcquireAll takes them in one order, whatever order they are named in:")
	s.code(`locks, err := manager.AcquireAll(ctx, warehouse, till) // all, or none
err = locks.Release(ctx)`)
	one, two, end, err := s.twoPrograms()
	if err != nil {
		return err
	}
	defer end()

	warehouse, till := s.key("warehouse"), s.key("till")
	var turn, holders, crowded atomic.Int32
	const each = 20
	err = together(2, each, func() error {
		program, keys := one, []lockkey.Key{warehouse, till}
		if turn.Add(1)%2 == 0 {
			program, keys = two, []lockkey.Key{till, warehouse}
		}
		locks, err := program.AcquireAll(s.ctx, keys...)
		if err != nil {
			return err
		}
		if holders.Add(1) > 1 {
			crowded.Add(1)
		}
		holders.Add(-1)
		return locks.Release(s.ctx)
	})
	if err != nil {
		return err
	}
	s.check(turn.Load() == 2*each && crowded.Load() == 0,
		"%d times both, named the other way round by each program: no deadlock, %d times two holders at once", turn.Load(), crowded.Load())
	return nil
}
