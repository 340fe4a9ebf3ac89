package fences_test

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
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// TestFenceOfEveryHolder: session locks, leases and transaction-level locks give tokens of one kind, and each supersedes
// those before it.
func TestFenceOfEveryHolder(t *testing.T) {
	t.Parallel()
	db, dsn := fencedDSN(t, &report{}, &reportNote{})
	locks, err := sessionlock.Open(t.Context(), dsn)
	stand.Must(t, err)
	t.Cleanup(func() { stand.Must(t, locks.Close(context.WithoutCancel(t.Context()))) })
	pool, err := db.DB()
	stand.Must(t, err)
	stand.Must(t, lease.Migrate(t.Context(), pool))
	leases, err := lease.New(t.Context(), pool)
	stand.Must(t, err)
	t.Cleanup(func() { stand.Must(t, leases.Close(context.WithoutCancel(t.Context()))) })
	key := lockkey.Of("report", pgtest.Key(t).String())

	r := report{}
	var earlier []context.Context
	write := func(ctx context.Context, body string) {
		ctx = context.WithoutCancel(ctx)
		stand.Must(t, db.WithContext(ctx).Save(&r).Error)
		stand.Must(t, db.WithContext(ctx).Model(&r).Update("body", body).Error)
		for _, old := range earlier {
			mustFenced(t, db.WithContext(old).Model(&r).Update("body", "late").Error)
			mustFenced(t, db.WithContext(old).Create(&report{}).Error)
		}
		earlier = append(earlier, ctx)
	}
	stand.Must(t, locks.Do(t.Context(), key, func(ctx context.Context) error { write(ctx, "Do of a lock"); return nil }, sessionlock.Fenced()))
	stand.Must(t, leases.Do(t.Context(), key, time.Minute, func(ctx context.Context) error { write(ctx, "Do of a lease"); return nil }))
	lock, err := locks.Acquire(t.Context(), key, sessionlock.Fenced())
	stand.Must(t, err)
	ctx, stop := lock.Bind(t.Context())
	write(ctx, "Bind of a lock")
	stop()
	stand.Must(t, lock.Release(t.Context()))
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
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
	stand.Must(t, err)
	ctx, stop = held.Bind(t.Context())
	write(ctx, "Bind of a lease")
	stop()
	stand.Must(t, held.Release(t.Context()))
	// A lock that was acquired without a token carries none.
	stand.Must(t, locks.Do(t.Context(), key, func(ctx context.Context) error {
		mustMissToken(t, db.WithContext(ctx).Model(&r).Update("body", "unfenced").Error)
		return nil
	}))
	stand.Equal(t, "stored", stand.Row[report](t, db, r.ID).Body, "Bind of a lease")
}

// fencedDSN is fenced, with the address of its schema for connections of others.
func fencedDSN(t *testing.T, models ...any) (*gorm.DB, string) {
	t.Helper()
	dsn := pgtest.SchemaDSN(t)
	db := stand.Fenced(t, models, pgtest.Through(dsn))
	return db, dsn
}
