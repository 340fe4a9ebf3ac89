package work_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/work"
)

// A job that was claimed in advance, and that somebody has stopped or freed since, does not begin as the old attempt.
func TestRun_jobsClaimedInAdvance(t *testing.T) {
	t.Parallel()
	const n, slow = 30, 10 // the handler of the job slow takes long
	for name, try := range map[string]struct {
		change func(db *gorm.DB) error
		runs   int // how often each later job runs
		state  string
	}{
		"stopped by conditions": {func(db *gorm.DB) error {
			return db.Model(&Mail{}).Where("id > ? AND state IN ('ready', 'running')", slow).Update("state", "dead").Error
		}, 0, "dead"},
		"stopped by SQL": {func(db *gorm.DB) error {
			return db.Exec("UPDATE mails SET state = 'dead' WHERE id > ?", slow).Error
		}, 0, "dead"},
		"put off": {func(db *gorm.DB) error {
			return db.Exec("UPDATE mails SET state = 'later', run_at = now() + interval '1 hour' WHERE id > ?", slow).Error
		}, 0, "later"},
		"deleted": {func(db *gorm.DB) error { return db.Where("id > ?", slow).Delete(&Mail{}).Error }, 0, ""},
		"made ready": {func(db *gorm.DB) error {
			return db.Model(&Mail{}).Where("id > ? AND state = 'running'", slow).Update("state", "ready").Error
		}, 1, "done"},
		"left as they are": {func(*gorm.DB) error { return nil }, 1, "done"},
		"locked for a moment": {func(db *gorm.DB) error {
			tx := db.Begin()
			time.AfterFunc(time.Second, func() { tx.Rollback() })
			return tx.Exec("SELECT FROM mails WHERE id > ? FOR UPDATE", slow).Error
		}, 1, "done"},
	} {
		for way, work := range map[string]func(t *testing.T, w *work.Worker[Mail]) (wait func() int){
			"Run": func(t *testing.T, w *work.Worker[Mail]) func() int {
				start(t, w)
				return func() int { return -1 }
			},
			"Drain": func(t *testing.T, w *work.Worker[Mail]) func() int {
				var n int
				var all sync.WaitGroup
				all.Go(func() { n = drain(t, w) })
				return func() int { all.Wait(); return n }
			},
		} {
			t.Run(name+" in "+way, func(t *testing.T) {
				t.Parallel()
				db := open(t)
				must(t, db.Exec("INSERT INTO mails (text) SELECT 'x' FROM generate_series(1, ?)", n).Error)
				var mu sync.Mutex
				runs, all := map[int64]int{}, 0
				waits, goes := make(chan struct{}), make(chan struct{})
				wait := work(t, worker(t, db, func(_ context.Context, m *Mail) error {
					mu.Lock()
					all++
					runs[m.ID]++
					mu.Unlock()
					if m.ID == slow {
						close(waits)
						<-goes
					}
					return nil
				}, oneWorker...))
				<-waits
				eventually(t, "jobs are claimed in advance", func() bool { return states(t, db)["running"] > 2 })
				must(t, try.change(db))
				<-time.After(300 * time.Millisecond)
				close(goes)
				eventually(t, "the end", func() bool {
					s := states(t, db)
					return s["running"]+s["ready"] == 0 && (try.state != "done" || s["done"] == n)
				})
				count := wait()
				mu.Lock()
				defer mu.Unlock()
				if count >= 0 && count != all {
					t.Errorf("Drain says %d attempts, and there were %d", count, all)
				}
				for id := int64(slow + 1); id <= n; id++ {
					if runs[id] != try.runs {
						t.Errorf("job %d ran %d times", id, runs[id])
					}
				}
				var left []Mail
				must(t, db.Where("id > ?", slow).Find(&left).Error)
				for _, m := range left {
					if m.State != try.state || m.Attempts > 1 && name != "made ready" {
						t.Errorf("job %d is %s after %d attempts", m.ID, m.State, m.Attempts)
					}
				}
			})
		}
	}
}

var oneWorker = []work.Option{work.Workers(1), work.Poll(20 * time.Millisecond)}
