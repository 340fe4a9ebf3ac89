package main

import (
	"errors"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/lockkey/compat"
)

func keys(s *stage) error {
	s.code(`key := gormlock.Key("invoice", 42)`)
	key := gormlock.Key("invoice", 42)
	id, _ := key.Int64()
	expression, err := lockkey.SQL("invoice", 42)
	if err != nil {
		return err
	}
	var computed int64
	if err := s.outside.QueryRowContext(s.ctx, "select "+expression).Scan(&computed); err != nil {
		return err
	}
	s.check(id == computed, "%s is %d in Go, and the server computes %d from the name:", key, id, computed)
	s.code("select " + expression)
	s.check(gormlock.Key("a", "bc") != gormlock.Key("ab", "c"),
		`Key("a", "bc") and Key("ab", "c") are two locks: parts keep their borders`)
	s.check(lockkey.Int64(42) != lockkey.Pair(0, 42),
		"numbers that you have already: lockkey.Int64(42) and lockkey.Pair(0, 42) are two locks, as they are for PostgreSQL")
	invalid := gormlock.Key("price", 4.2)
	s.check(errors.Is(invalid.Err(), lockkey.ErrInvalid), "what cannot name a lock fails where it is used: %v", invalid.Err())
	return nil
}

// foreign plays a Ruby process of GoodJob: its SQL on a plain connection, against the key that compat computes.
func foreign(s *stage) error {
	s.say("GoodJob, a job runner for Rails, locks a job by the MD5 of its id. Here it locks one by its own SQL:")
	const lock = "select pg_try_advisory_lock(('x' || substr(md5($1), 1, 16))::bit(64)::bigint)"
	const unlock = "select pg_advisory_unlock(('x' || substr(md5($1), 1, 16))::bit(64)::bigint)"
	s.code(lock)
	s.code(`gormlock.AcquireXactLock(tx, []lockkey.Key{compat.GoodJob("good_jobs-…")}, gormlock.Try())`)
	name := "good_jobs-" + s.name
	ruby, err := s.outside.Conn(s.ctx)
	if err != nil {
		return err
	}
	defer func() { _ = ruby.Close() }() // back to the pool, which ends with the stage
	ask := func(query string) (yes bool, err error) {
		err = ruby.QueryRowContext(s.ctx, query, name).Scan(&yes)
		return yes, err
	}

	held, err := ask(lock)
	if err != nil {
		return err
	}
	key := compat.GoodJob(name)
	err = s.db.Transaction(try(key))
	s.check(held && errors.Is(err, gormlock.ErrNotAcquired), "while Ruby works on the job, Go is told: %v", err)
	if _, err := ask(unlock); err != nil {
		return err
	}

	tx := s.db.Begin()
	err = try(key)(tx)
	granted, failed := ask(lock)
	s.check(err == nil && !granted && failed == nil, "while Go holds it, Ruby's try says %t", granted)
	if err := errors.Join(failed, tx.Commit().Error); err != nil {
		return err
	}

	tool, reserved := compat.Reserved(lockkey.Int64(4097083626))
	s.check(reserved, "and a bigint that a tool has fixed for itself is known: 4097083626 is %s", tool)
	return nil
}
