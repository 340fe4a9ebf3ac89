package work_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/work"
)

// A job is freed while its handler runs, and the same process claims it again: the context of the first handler ends at once, and its result does
// not count.
func TestRun_tellsAHandlerWhoseJobIsClaimedAgain(t *testing.T) {
	t.Parallel()
	for how, free := range map[string]func(db *gorm.DB, id int64) error{
		"stopped and requeued": func(db *gorm.DB, id int64) error {
			err := db.Model(&Mail{}).Where("id = ?", id).Update("state", "dead").Error
			if err == nil {
				_, err = work.Requeue(context.Background(), db, &Mail{}, id)
			}
			return err
		},
		"made ready by conditions": func(db *gorm.DB, id int64) error {
			return db.Model(&Mail{}).Where("id = ?", id).Update("state", "ready").Error
		},
		"made ready by SQL": func(db *gorm.DB, id int64) error {
			return db.Exec("UPDATE mails SET state = 'ready', claimed_by = '', claimed_until = NULL WHERE id = ?", id).Error
		},
	} {
		for returned, result := range map[string]error{"nil": nil, "an error": errors.New("no"), "Dead": work.Dead(nil), "Later": work.Later(time.Hour, nil)} {
			t.Run(how+", "+returned, func(t *testing.T) {
				t.Parallel()
				db := open(t)
				mail := enqueue(t, db, "x")[0]
				var attempts atomic.Int32
				told, second := make(chan error, 1), make(chan context.Context, 3)
				over := make(chan struct{})
				start(t, worker(t, db, func(ctx context.Context, m *Mail) error {
					if attempts.Add(1) == 1 {
						if err := free(db, m.ID); err != nil {
							t.Error(err)
						}
						select {
						case <-ctx.Done():
						case <-time.After(bound):
						}
						told <- context.Cause(ctx)
						return result
					}
					second <- ctx
					<-over
					return nil
				}, work.Workers(2), work.Poll(10*time.Millisecond)))
				ctx := <-second
				if err := <-told; !errors.Is(err, work.ErrTakenOver) {
					t.Errorf("the cause is %v", err)
				}
				must(t, work.Enqueue(db, &Mail{Text: "behind it"})) // runs once the first has ended
				eventually(t, "the third attempt", func() bool { return attempts.Load() == 3 })
				if m := reload(t, db, mail.ID); m.State != "running" || ctx.Err() != nil {
					t.Errorf("%s, %v", m.State, context.Cause(ctx))
				}
				close(over)
				eventually(t, "it is done", func() bool { return reload(t, db, mail.ID).State == "done" })
				if n := attempts.Load(); n != 3 {
					t.Errorf("%d attempts", n)
				}
			})
		}
	}
}
