package work_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

// Behind a pooler in transaction mode nobody gets notifications: workers poll instead, and log that in one line. In session mode they get
// notifications.
func TestRun_behindPgBouncer(t *testing.T) {
	t.Parallel()
	for mode, hears := range map[string]bool{"transaction": false, "session": true} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.Database(t)
			b := pgtest.StartPgBouncer(t, dsn, "pool_mode = "+mode, "max_client_conn = 100", "default_pool_size = 10")
			warned := pgtest.NewLogger()
			db := pgtest.Open(t, pgtest.Through(b.DSN()), pgtest.Param("default_query_exec_mode", "exec"), pgtest.Plugin(gormlock.New()),
				pgtest.Config(func(c *gorm.Config) { c.Logger = warned }))
			must(t, work.Migrate(db, &Mail{}))
			var n atomic.Int32
			poll := 50 * time.Millisecond
			if hears {
				poll = time.Hour
			}
			start(t, worker(t, db, func(context.Context, *Mail) error { n.Add(1); return nil }, work.Poll(poll)))
			if hears {
				listens(t, pgtest.Open(t, pgtest.Through(dsn)), "datname = current_database() AND query LIKE '%LISTEN gormlock_work'")
			}
			late := 0
			for i := range int32(5) {
				began := time.Now()
				enqueue(t, db, "x")
				eventually(t, "the job", func() bool { return n.Load() == i+1 })
				if time.Since(began) > 4*time.Second {
					late++
				}
			}
			if late > 2 {
				t.Errorf("%d of 5 jobs began late", late)
			}
			if !hears { // the worker tries for a while to get notifications
				eventually(t, "the warning", func() bool { return len(warned.Lines()) > 0 })
			}
			lines := strings.Join(warned.Lines(), "\n")
			if !hears && (len(warned.Lines()) != 1 || !strings.Contains(lines, "a pooler in transaction mode") || !strings.Contains(lines, "every 50ms")) || hears && lines != "" {
				t.Errorf("it warns %q", warned.Lines())
			}
		})
	}
}

// If handlers keep the pool full, jobs are still claimed and stored.
func TestRun_onAFullPool(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()), pgtest.MaxConns(2))
	must(t, work.Migrate(db, &Mail{}))
	enqueue(t, db, strings.Split(strings.Repeat("x ", 99)+"x", " ")...)
	var n atomic.Int32
	w := worker(t, db, func(ctx context.Context, m *Mail) error {
		n.Add(1)
		return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			if err := tx.Exec("SELECT pg_sleep(0.005)").Error; err != nil {
				return err
			}
			return work.Complete(tx, m)
		})
	}, work.Workers(8))
	end := start(t, w)
	eventually(t, "all done", func() bool { return states(t, db)["done"] == 100 })
	must(t, end())
	if n.Load() != 100 {
		t.Errorf("%d attempts", n.Load())
	}
}
