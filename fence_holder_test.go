package gormlock_test

import (
	"context"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// TestFenceOfEveryHolder: session locks, leases and transaction-level locks give tokens of one kind, and each supersedes
// those before it.
func TestFenceOfEveryHolder(t *testing.T) {
	t.Parallel()
	db, dsn := fencedDSN(t, &report{}, &reportNote{})
	locks, err := sessionlock.Open(t.Context(), dsn)
	must(t, err)
	t.Cleanup(func() { must(t, locks.Close(context.WithoutCancel(t.Context()))) })
	pool, err := db.DB()
	must(t, err)
	must(t, lease.Migrate(t.Context(), pool))
	leases, err := lease.New(t.Context(), pool)
	must(t, err)
	t.Cleanup(func() { must(t, leases.Close(context.WithoutCancel(t.Context()))) })
	key := lockkey.Of("report", pgtest.Key(t).String())

	r := report{}
	var earlier []context.Context
	write := func(ctx context.Context, body string) {
		ctx = context.WithoutCancel(ctx)
		must(t, db.WithContext(ctx).Save(&r).Error)
		must(t, db.WithContext(ctx).Model(&r).Update("body", body).Error)
		for _, old := range earlier {
			mustFenced(t, db.WithContext(old).Model(&r).Update("body", "late").Error)
			mustFenced(t, db.WithContext(old).Create(&report{}).Error)
		}
		earlier = append(earlier, ctx)
	}
	must(t, locks.Do(t.Context(), key, func(ctx context.Context) error { write(ctx, "Do of a lock"); return nil }, sessionlock.Fenced()))
	must(t, leases.Do(t.Context(), key, time.Minute, func(ctx context.Context) error { write(ctx, "Do of a lease"); return nil }))
	lock, err := locks.Acquire(t.Context(), key, sessionlock.Fenced())
	must(t, err)
	ctx, stop := lock.Bind(t.Context())
	write(ctx, "Bind of a lock")
	stop()
	must(t, lock.Release(t.Context()))
	must(t, db.Transaction(func(tx *gorm.DB) error {
		token, err := gormlock.FenceFor(tx, key)
		if err != nil {
			return err
		}
		return tx.Clauses(gormlock.Fence(token)).Model(&r).Update("body", "FenceFor").Error
	}))
	for _, old := range earlier {
		mustFenced(t, db.WithContext(old).Model(&r).Update("body", "late").Error)
	}
	held, err := leases.Acquire(t.Context(), key, time.Minute)
	must(t, err)
	ctx, stop = held.Bind(t.Context())
	write(ctx, "Bind of a lease")
	stop()
	must(t, held.Release(t.Context()))
	// A lock that was acquired without a token carries none.
	must(t, locks.Do(t.Context(), key, func(ctx context.Context) error {
		mustMissToken(t, db.WithContext(ctx).Model(&r).Update("body", "unfenced").Error)
		return nil
	}))
	equal(t, "stored", row[report](t, db, r.ID).Body, "Bind of a lease")
}

// fencedDSN is fenced, with the address of its schema for connections of others.
func fencedDSN(t *testing.T, models ...any) (*gorm.DB, string) {
	t.Helper()
	dsn := pgtest.SchemaDSN(t)
	db := fenced(t, models, pgtest.Through(dsn))
	return db, dsn
}
