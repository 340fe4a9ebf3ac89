package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// report is written by whoever holds its lease.
type report struct {
	ID    int64
	Body  string
	Fence int64 `gormlock:"fence,key=report"`
}

// The ctx of Do guards models that have a fence: a holder that sleeps past its lease writes nothing more, although it does not know of the loss.
func TestDo_guardsModels(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	db := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()))
	if err := db.AutoMigrate(&report{}); err != nil {
		t.Fatal(err)
	}
	pool := tables(t, pgtest.Through(dsn))
	m, rival := open(t, pool), open(t, pool)
	k := lockkey.Of("report", 1)
	write := func(ctx context.Context, body string) error {
		return db.WithContext(ctx).Model(&report{ID: 1}).Update("body", body).Error
	}
	var slept context.Context
	err := m.Do(t.Context(), k, time.Minute, func(ctx context.Context) error {
		slept = context.WithoutCancel(ctx) //nolint:fatcontext // a statement that was on its way outlives the lease
		if err := db.WithContext(ctx).Create(&report{ID: 1, Body: "new"}).Error; err != nil {
			return err
		}
		return write(ctx, "first")
	})
	if err != nil {
		t.Fatal(err)
	}
	err = rival.Do(t.Context(), k, time.Minute, func(ctx context.Context) error {
		if err := write(slept, "too late"); !errors.Is(err, gormlock.ErrFenced) { // before the rival has written
			t.Errorf("the first holder's write: %v", err)
		}
		return write(ctx, "second")
	})
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := db.First(&r, 1).Error; err != nil || r.Body != "second" {
		t.Errorf("%+v, %v", r, err)
	}
	if err := write(t.Context(), "without a lease"); !errors.Is(err, gormlock.ErrFenceMissing) {
		t.Errorf("a write without a lease: %v", err)
	}
	if _, err := rival.TryAcquire(t.Context(), k, time.Minute, lease.AtLeast(0)); err != nil {
		t.Error(err)
	}
}
