package main

import (
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/lease"
)

// Report is written by the holder of a lease, and by the latest one alone.
type Report struct {
	ID    int64
	Body  string
	Fence int64 `gorm:"not null;default:0" gormlock:"fence"`
}

// leases lets a holder sleep past its lease.
func leases(s *stage) error {
	s.say("Behind a pooler in transaction mode, or in a function that lives for a request, there is no session to hold a lock. " +
		"A lease is a row with an end; the database's clock decides. Each holder gets a number, and what it writes carries it:")
	s.code(`type Report struct { …; Fence int64 ` + "`gorm:\"not null;default:0\" gormlock:\"fence\"`" + ` }
manager.Do(ctx, key, 10*time.Second, func(ctx context.Context) error {
    return db.WithContext(ctx).Save(&report).Error
})`)
	pool, err := s.db.DB()
	if err != nil {
		return err
	}
	if err := errors.Join(fence.Migrate(s.ctx, pool), lease.Migrate(s.ctx, pool), s.db.AutoMigrate(&Report{})); err != nil {
		return err
	}
	manager, err := lease.New(s.ctx, pool, lease.Owner(s.name))
	if err != nil {
		return err
	}
	defer func() { _ = manager.Close(s.ctx) }() // its leases go with the tour

	key := s.key("report")
	early, err := manager.Acquire(s.ctx, key, 5*time.Second)
	if err != nil {
		return err
	}
	report := Report{Body: "first draft"}
	if err := s.db.WithContext(fence.NewContext(s.ctx, early.Token())).Create(&report).Error; err != nil {
		return err
	}
	_, err = manager.TryAcquire(s.ctx, key, 5*time.Second)
	s.check(errors.Is(err, lease.ErrNotAcquired), "one program holds it, another is told: %v", err)

	// It sleeps: for the others that is as if its row had come to its end.
	if _, err := s.outside.ExecContext(s.ctx, "update gormlock_lease set expires_at = now() - interval '1 second' where name = $1", key.Name()); err != nil {
		return err
	}
	late, err := manager.Acquire(s.ctx, key, 5*time.Second)
	if err != nil {
		return err
	}
	s.check(late.Token().Number > early.Token().Number, "it sleeps past its end, and another has the lease, with a greater number")
	err = s.db.WithContext(fence.NewContext(s.ctx, early.Token())).Model(&report).Update("body", "what the sleeper dreamt").Error
	s.check(errors.Is(err, gormlock.ErrFenced), "the sleeper wakes up and writes, before the other has written anything: %v", err)
	return late.Release(s.ctx)
}

// onceOnly lets a request arrive twice.
func onceOnly(s *stage) error {
	s.say("A client that got no answer sends its request again. The effect is stored with the key it came under, in one transaction:")
	s.code(`err := gormlock.MigrateOnce(db) // its table
number, err := gormlock.Once(tx, idempotencyKey, func(tx *gorm.DB) (int64, error) { … }, gormlock.ForRequest(body))`)
	if err := gormlock.MigrateOnce(s.db); err != nil {
		return err
	}
	payments := 0
	pay := func(body string) (result string, err error) {
		err = gormlock.Transaction(s.db, func(tx *gorm.DB) error {
			result, err = gormlock.Once(tx, s.name+" pay 42", func(*gorm.DB) (string, error) {
				payments++
				return fmt.Sprintf("payment %d", payments), nil
			}, gormlock.ForRequest(body))
			return err
		})
		return result, err
	}
	first, err := pay("42 €")
	if err != nil {
		return err
	}
	second, err := pay("42 €")
	if err != nil {
		return err
	}
	s.check(payments == 1 && first == second, "two requests, one effect, and the second is answered with %q", second)
	_, err = pay("43 €")
	s.check(errors.Is(err, gormlock.ErrOtherRequest) && payments == 1, "the same key with another amount is refused: %v", err)
	swept, err := gormlock.SweepOnce(s.db, 30*24*time.Hour, 1000)
	s.check(err == nil && swept == 0, "gormlock.SweepOnce removes keys older than a month: %d of these", swept)
	return err
}
