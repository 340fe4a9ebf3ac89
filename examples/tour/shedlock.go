package main

import (
	"context"
	"errors"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/lease"
)

// What ShedLock sends in Java, to take a lock for a minute and to give it back.
const (
	javaLocks = "INSERT INTO shedlock(name, lock_until, locked_at, locked_by)" +
		" VALUES($1, timezone('utc', CURRENT_TIMESTAMP) + interval '1 minute', timezone('utc', CURRENT_TIMESTAMP), 'java-host')" +
		" ON CONFLICT (name) DO UPDATE SET lock_until = timezone('utc', CURRENT_TIMESTAMP) + interval '1 minute'," +
		" locked_at = timezone('utc', CURRENT_TIMESTAMP), locked_by = 'java-host'" +
		" WHERE shedlock.name = $1 AND shedlock.lock_until <= timezone('utc', CURRENT_TIMESTAMP)"
	javaUnlocks = "UPDATE shedlock SET lock_until = timezone('utc', CURRENT_TIMESTAMP) WHERE name = $1 AND locked_by = 'java-host'"
)

// shedLock plays a Spring application on one table with Go.
func shedLock(s *stage) error {
	s.say("In Spring ShedLock lets one node run what all have scheduled. Here Java locks by ShedLock's own SQL, and Go is one node more:")
	s.code(`manager, err := lease.New(ctx, db, lease.ShedLock()) // its table
manager.Do(ctx, gormlock.Key("nightlyReport"), time.Minute, work)`)
	pool, err := s.db.DB()
	if err != nil {
		return err
	}
	if err := errors.Join(fence.Migrate(s.ctx, pool), lease.Migrate(s.ctx, pool, lease.ShedLock())); err != nil {
		return err
	}
	manager, err := lease.New(s.ctx, pool, lease.ShedLock(), lease.Owner(s.name))
	if err != nil {
		return err
	}
	defer func() { _ = manager.Close(s.ctx) }() // its leases go with the tour

	key := gormlock.Key("nightlyReport")
	java := func(query string) (took bool, err error) {
		//gormlockvet:ignore outer Java is another program, it does not see Go's lease
		result, err := s.outside.ExecContext(s.ctx, query, key.Topic())
		if err != nil {
			return false, err
		}
		rows, err := result.RowsAffected()
		return rows == 1, err
	}
	took, err := java(javaLocks)
	if err != nil {
		return err
	}
	_, refused := manager.TryAcquire(s.ctx, key, time.Minute)
	s.check(took && errors.Is(refused, lease.ErrNotAcquired), "while Java works, Go is told: %v", refused)
	if _, err := java(javaUnlocks); err != nil {
		return err
	}
	err = manager.Do(s.ctx, key, time.Minute, func(context.Context) (err error) {
		took, err = java(javaLocks)
		return err
	})
	s.check(err == nil && !took, "Java has ended, and Go runs it; meanwhile Java gets it: %t", took)
	return err
}
