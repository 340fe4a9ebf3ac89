package work_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/observe"
	"github.com/gormlock/gormlock/work"
)

// A handler that goes on after its Complete is committed has no lease to lose: nothing is taken from it, and its context does not end.
func TestComplete_thenTheHandlerGoesOn(t *testing.T) {
	t.Parallel()
	for name, complete := range map[string]func(ctx context.Context, db *gorm.DB, m *Mail) error{
		"in a transaction": func(ctx context.Context, db *gorm.DB, m *Mail) error {
			return gormlock.Transaction(db.WithContext(ctx), func(tx *gorm.DB) error { return work.Complete(tx, m) })
		},
		"without ctx": func(_ context.Context, db *gorm.DB, m *Mail) error {
			return db.Transaction(func(tx *gorm.DB) error { return work.Complete(tx, m) })
		},
		"without a transaction": func(ctx context.Context, db *gorm.DB, m *Mail) error { return work.Complete(db.WithContext(ctx), m) },
		"by SQL": func(_ context.Context, db *gorm.DB, m *Mail) error {
			return db.Exec("UPDATE mails SET state = 'done', version = version + 1 WHERE id = ?", m.ID).Error
		},
		"and deletes it": func(ctx context.Context, db *gorm.DB, m *Mail) error {
			if err := work.Complete(db.WithContext(ctx), m); err != nil {
				return err
			}
			return db.Delete(m).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			enqueue(t, db, "x")
			const lease = 600 * time.Millisecond
			var heard pgtest.Hearer
			cause := make(chan error, 1)
			end := start(t, worker(t, db, func(ctx context.Context, m *Mail) error {
				if err := complete(ctx, db, m); err != nil {
					t.Error(err)
				}
				select {
				case <-ctx.Done():
				case <-time.After(4 * lease):
				}
				cause <- context.Cause(ctx)
				return nil
			}, work.Lease(lease), work.Observer(&heard)))
			if err := <-cause; err != nil {
				t.Errorf("the handler was told: %v", err)
			}
			must(t, end())
			if kinds := heard.Kinds(); !slices.Equal(kinds, []observe.Kind{observe.Claimed, observe.Done}) || states(t, db)["running"] != 0 {
				t.Errorf("%v, %v", kinds, states(t, db))
			}
		})
	}
}

// Its context ends with its worker.
func TestComplete_thenTheWorkerEnds(t *testing.T) {
	t.Parallel()
	db := open(t)
	enqueue(t, db, "x")
	completed, cause := make(chan struct{}), make(chan error, 1)
	end := start(t, worker(t, db, func(ctx context.Context, m *Mail) error {
		must(t, work.Complete(db, m))
		close(completed)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil
	}, work.Grace(0)))
	<-completed
	if err := end(); err == nil {
		t.Error("no handler was late")
	}
	if err := <-cause; err == nil || states(t, db)["done"] != 1 {
		t.Errorf("%v, %v", err, states(t, db))
	}
}
