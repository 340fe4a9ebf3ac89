package work_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

// If a dial of the pool fails while a run begins, whichever dial it is, it is tried again, so that workers get notifications.
func TestRun_listensAfterAFailedDial(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]func(dial int64) bool{
		"the first": func(n int64) bool { return n == 1 }, "the second": func(n int64) bool { return n == 2 }, "the third": func(n int64) bool { return n == 3 },
		"the fourth": func(n int64) bool { return n == 4 }, "the fifth": func(n int64) bool { return n == 5 }, "each other": func(n int64) bool { return n%2 == 0 && n < 20 },
		"the first ten": func(n int64) bool { return n <= 10 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.Database(t)
			beside := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()))
			must(t, work.Migrate(beside, &Mail{}))
			config, err := pgx.ParseConfig(dsn)
			must(t, err)
			var begun atomic.Bool
			var dials atomic.Int64
			pool := stdlib.OpenDB(*config, stdlib.OptionBeforeConnect(func(context.Context, *pgx.ConnConfig) error {
				if begun.Load() && fails(dials.Add(1)) {
					return errors.New("the password has expired")
				}
				return nil
			}))
			pool.SetMaxIdleConns(-1)
			t.Cleanup(func() { must(t, pool.Close()) })
			logged := pgtest.NewLogger()
			db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{Logger: logged})
			must(t, err)
			must(t, db.Use(gormlock.New()))
			w := worker(t, db, func(context.Context, *Mail) error { return nil }, work.Poll(time.Hour))
			begun.Store(true)
			start(t, w)
			listens(t, beside, "application_name = 'gormlock work' AND query LIKE '%LISTEN%' AND state = 'idle' AND datname = current_database()")
			deaf, again := 0, 0
			eventually(t, "what it says ends well", func() bool {
				all := strings.Join(logged.Lines(), "\n")
				deaf, again = strings.Count(all, "no connection listens for new jobs"), strings.Count(all, "are notified of new jobs again")
				return deaf == again
			})
			if deaf > 1 {
				t.Errorf("it says %q", logged.Lines())
			}
		})
	}
}

// If a dial fails in New, New returns its error.
func TestNew_afterAFailedDial(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	must(t, work.Migrate(pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New())), &Mail{}))
	config, err := pgx.ParseConfig(dsn)
	must(t, err)
	expired := errors.New("the password has expired")
	for failing := int64(1); ; failing++ {
		var dials atomic.Int64
		pool := stdlib.OpenDB(*config, stdlib.OptionBeforeConnect(func(context.Context, *pgx.ConnConfig) error {
			if dials.Add(1) == failing+2 { // Open and Use
				return expired
			}
			return nil
		}))
		pool.SetMaxIdleConns(-1)
		db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{Logger: pgtest.NewLogger()})
		must(t, err)
		must(t, db.Use(gormlock.New()))
		dials.Store(2)
		_, err = work.New(db, func(context.Context, *Mail) error { return nil })
		met := dials.Load() >= failing+2
		must(t, pool.Close())
		if !met {
			must(t, err)
			return
		}
		if !errors.Is(err, expired) {
			t.Errorf("dial %d of New: %v", failing, err)
		}
	}
}
