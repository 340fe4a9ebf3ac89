package work_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/work"
)

// While a transaction has locked the row of a job, its lease cannot be renewed. When the lease ends, the handler's context ends, whoever has locked
// the row: the row may be free the next moment, and another worker takes it.
func TestRun_tellsAHandlerWhoseJobIsLocked(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]func(tx *gorm.DB, m *Mail) error{
		"SELECT FOR UPDATE": func(tx *gorm.DB, m *Mail) error {
			return tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&Mail{}, m.ID).Error
		},
		"its progress": func(tx *gorm.DB, m *Mail) error { return tx.Model(m).Update("text", "half").Error },
		"SQL": func(tx *gorm.DB, m *Mail) error {
			return tx.Exec("UPDATE mails SET text = 'half' WHERE id = ?", m.ID).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			mail := enqueue(t, db, "x")[0]
			const lease = 1500 * time.Millisecond
			told := make(chan error, 2)
			start(t, worker(t, db, func(ctx context.Context, m *Mail) error {
				if m.Attempts > 1 {
					return nil
				}
				return db.Transaction(func(tx *gorm.DB) error {
					if err := lock(tx, m); err != nil {
						return err
					}
					select {
					case <-ctx.Done():
					case <-time.After(3 * lease):
					}
					told <- context.Cause(ctx)
					return nil
				})
			}, work.Lease(lease), work.Backoff(func(int) time.Duration { return 0 })))
			if err := <-told; !errors.Is(err, work.ErrTakenOver) {
				t.Errorf("the cause is %v", err)
			}
			eventually(t, "the second attempt", func() bool { return reload(t, db, mail.ID).State == "done" })
			if m := reload(t, db, mail.ID); m.Attempts != 2 || m.LastError == "" {
				t.Errorf("%d attempts, %q", m.Attempts, m.LastError)
			}
		})
	}
}

// Only the transaction that completes a job keeps it for its handler. If that is rolled back after the end of the lease, the handler's context
// ends.
func TestRun_tellsAHandlerWhoseCompleteIsUndone(t *testing.T) {
	t.Parallel()
	for name, savepoint := range map[string]bool{"rolled back": false, "rolled back to a savepoint": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			mail := enqueue(t, db, "x")[0]
			const lease = 3 * time.Second
			told := make(chan error, 2)
			behind := make(chan *gorm.DB, 1)
			complete := func(ctx context.Context, tx *gorm.DB, m *Mail) error {
				own := *m
				if err := work.Complete(tx.WithContext(ctx), &own); err != nil {
					return err
				}
				go func() { // locks the row as soon as it is free
					rival := db.Begin()
					rival.Exec("SELECT FROM mails WHERE id = ? FOR UPDATE", m.ID)
					behind <- rival
				}()
				<-time.After(2 * lease)
				if ctx.Err() != nil {
					t.Errorf("the handler was told while it completes: %v", context.Cause(ctx))
				}
				return errUndo
			}
			wait := func(ctx context.Context) {
				select {
				case <-ctx.Done():
				case <-time.After(3 * lease):
				}
				told <- context.Cause(ctx)
			}
			start(t, worker(t, db, func(ctx context.Context, m *Mail) error {
				if m.Attempts > 1 {
					return nil
				}
				if !savepoint {
					if err := db.Transaction(func(tx *gorm.DB) error { return complete(ctx, tx, m) }); !errors.Is(err, errUndo) {
						t.Error(err)
					}
					wait(ctx)
					return nil
				}
				return db.Transaction(func(tx *gorm.DB) error {
					if err := tx.Transaction(func(tx *gorm.DB) error { return complete(ctx, tx, m) }); !errors.Is(err, errUndo) {
						t.Error(err)
					}
					wait(ctx)
					return nil
				})
			}, work.Lease(lease), work.Backoff(func(int) time.Duration { return 0 })))
			if err := <-told; !errors.Is(err, work.ErrTakenOver) {
				t.Errorf("the cause is %v", err)
			}
			must(t, (<-behind).Rollback().Error)
			eventually(t, "the second attempt", func() bool { return reload(t, db, mail.ID).State == "done" })
		})
	}
}
