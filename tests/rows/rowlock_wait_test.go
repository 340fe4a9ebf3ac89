package rows_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

const (
	shortWait = 30 * time.Millisecond
	longWait  = 20 * time.Second
)

// TestRowLockRoundTrips counts what row locks and claims cost on the wire, when everything is warm: nothing more than
// the query, and two round trips more where a locked row is an error that must leave the transaction usable.
func TestRowLockRoundTrips(t *testing.T) {
	t.Parallel()
	stand.EachMode(t, func(t *testing.T, opts ...pgtest.Option) {
		seats(t)
		proxy, tapped := pgtest.Tap(t, pgtest.SchemaDSN(t))
		db := stand.Open(t, append(opts, pgtest.Through(tapped), pgtest.MaxConns(1))...)
		stand.MustDo(t, db.Exec("create table jobs (id bigint primary key, state text, priority int, attempts int, updated_at timestamptz, deleted_at timestamptz)"))
		stand.MustDo(t, db.Exec("insert into jobs (id, state) select i, 'ready' from generate_series(1, 100) i"))
		lock := func(opts ...gormlock.RowLockOption) func(tx *gorm.DB) error {
			return func(tx *gorm.DB) error {
				return tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate, opts...)).Find(&[]seat{}).Error
			}
		}
		for _, c := range []struct {
			name string
			want int
			run  func(tx *gorm.DB) error
		}{
			{"waiting", 1, lock()},
			{"Skip", 1, lock(gormlock.Skip())},
			{"Try", 3, lock(gormlock.Try())},
			{"Timeout", 3, lock(gormlock.Timeout(time.Second))},
			{"LockRow", 1, func(tx *gorm.DB) error { return gormlock.LockRow(tx, &seat{ID: 1}) }},
			{"LockRow that tries", 1, func(tx *gorm.DB) error { return gormlock.LockRow(tx, &seat{ID: 1}, gormlock.Try()) }},
			{"LockRows", 1, func(tx *gorm.DB) error { return gormlock.LockRows(tx, &[]seat{{ID: 4}, {ID: 1}}) }},
			{"Claim", 1, func(tx *gorm.DB) error {
				return stand.ErrorOf(gormlock.Claim[stand.Job](tx, 10, stand.Running, stand.Ready))
			}},
		} {
			stand.InTx(t, db, func(tx *gorm.DB) {
				stand.Must(t, c.run(tx)) // it is prepared now
				proxy.Reset()
				stand.Must(t, c.run(tx))
				if n := proxy.RoundTrips(); n != c.want {
					t.Errorf("%s: %d round trips, want %d: %q", c.name, n, c.want, proxy.Statements())
				}
			})
		}
		stand.Must(t, stand.ErrorOf(gormlock.Claim[stand.Job](db, 10, stand.Running, stand.Ready)))
		proxy.Reset()
		stand.Must(t, stand.ErrorOf(gormlock.Claim[stand.Job](db, 10, stand.Running, stand.Ready)))
		if n := proxy.RoundTrips(); n != 1 {
			t.Errorf("a claim outside of a transaction: %d round trips", n)
		}
	})
}

func TestRowLockWait(t *testing.T) {
	t.Parallel()
	db := seats(t)
	other := stand.NewRowRival(t)
	t.Run("a record that is not there leaves the transaction as it was", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.MustDo(t, tx.Exec("set local lock_timeout = '54321ms'"))
			err := tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Timeout(time.Second))).First(&seat{}, 77).Error
			if !errors.Is(err, gorm.ErrRecordNotFound) {
				t.Fatal(err)
			}
			assertLockTimeout(t, tx, "54321ms")
			if err := tx.Exec("release savepoint gormlock").Error; err == nil {
				t.Fatal("the savepoint was left open")
			}
		})
	})
	t.Run("another error of the server aborts the transaction as it would anyway", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.MustDo(t, tx.SavePoint("mine"))
			err := tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Try())).Where("1/(id-1) > 0").Find(&[]seat{}).Error
			if !stand.FromServer(err) || errors.Is(err, gormlock.ErrNotAcquired) {
				t.Fatal(err)
			}
			stand.MustDo(t, tx.RollbackTo("mine"))
			stand.MustDo(t, tx.Find(&[]seat{}))
		})
	})
	t.Run("in a transaction that is aborted already the server's error comes through", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			_ = tx.Exec("select 1/0").Error
			err := tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Timeout(time.Second))).Find(&[]seat{}).Error
			if !stand.FromServer(err) {
				t.Fatal(err)
			}
		})
	})
	t.Run("the session's own lock_timeout is ErrLockTimeout too", func(t *testing.T) {
		release := other.Hold("select from seats where id = 2 for update")
		defer release()
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.MustDo(t, tx.Exec("set local lock_timeout = '20ms'"))
			err := tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Find(&[]seat{}).Error
			if !errors.Is(err, gormlock.ErrLockTimeout) || !strings.Contains(err.Error(), "seats") {
				t.Fatal(err)
			}
		})
	})
	t.Run("the error names table and time", func(t *testing.T) {
		release := other.Hold("select from seats where id = 2 for update")
		defer release()
		stand.InTx(t, db, func(tx *gorm.DB) {
			err := tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Timeout(shortWait))).Find(&[]seat{}).Error
			if err == nil || err.Error() != "gormlock: lock rows of seats: lock wait timed out, after 30ms" {
				t.Fatal(err)
			}
			err = tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Try())).Find(&[]seat{}).Error
			if err == nil || err.Error() != "gormlock: lock rows of seats: held by another session" {
				t.Fatal(err)
			}
		})
	})
	t.Run("beside an advisory lock each has its own error", func(t *testing.T) {
		key := pgtest.Key(t)
		if _, err := other.Conn.Exec(t.Context(), "select pg_advisory_lock($1)", keyID(t, key)); err != nil {
			t.Fatal(err)
		}
		stand.InTx(t, db, func(tx *gorm.DB) {
			query := tx.Scopes(gormlock.WithXactLock(key, gormlock.Timeout(shortWait)), gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Timeout(shortWait)))
			query = query.Session(&gorm.Session{})
			if err := query.Find(&[]seat{}).Error; !errors.Is(err, gormlock.ErrLockTimeout) || !strings.Contains(err.Error(), key.String()) {
				t.Fatal(err)
			}
			if _, err := other.Conn.Exec(t.Context(), "select pg_advisory_unlock_all()"); err != nil {
				t.Fatal(err)
			}
			release := other.Hold("select from seats where id = 2 for update")
			defer release()
			if err := query.Find(&[]seat{}).Error; !errors.Is(err, gormlock.ErrLockTimeout) || !strings.Contains(err.Error(), "rows of seats") {
				t.Fatal(err)
			}
		})
	})
	t.Run("a refusal frees the advisory lock of the call too", func(t *testing.T) {
		release := other.Hold("select from seats where id = 2 for update")
		defer release()
		for name, refused := range map[string]func(tx *gorm.DB, s *seat) error{
			"Try": func(tx *gorm.DB, s *seat) error { return tx.Scopes(rowLockOf(gormlock.Try())).First(s, 2).Error },
			"Timeout": func(tx *gorm.DB, s *seat) error {
				return tx.Scopes(rowLockOf(gormlock.Timeout(shortWait))).First(s, 2).Error
			},
			"LockRow": func(tx *gorm.DB, _ *seat) error { return gormlock.LockRow(tx, &seat{ID: 2}, gormlock.Try()) },
			"LockRow, waits": func(tx *gorm.DB, _ *seat) error {
				return gormlock.LockRow(tx, &seat{ID: 2}, gormlock.Timeout(shortWait))
			},
			"LockRows": func(tx *gorm.DB, _ *seat) error {
				return gormlock.LockRows(tx, &[]seat{{ID: 1}, {ID: 2}}, gormlock.Try())
			},
		} {
			for _, options := range [][]gormlock.LockOption{nil, {gormlock.Try()}, {gormlock.Timeout(longWait)}} {
				stand.InTx(t, db, func(tx *gorm.DB) {
					stand.MustDo(t, tx.Exec("set local lock_timeout = '12345ms'"))
					key := pgtest.Key(t)
					locked := func() (n int64) {
						stand.MustDo(t, tx.Raw("select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()").Scan(&n))
						return n
					}
					held := func() *gorm.DB { return tx.Scopes(gormlock.WithXactLock(key, options...)) }
					if err := refused(held(), &seat{}); !errors.Is(err, gormlock.ErrNotAcquired) && !errors.Is(err, gormlock.ErrLockTimeout) {
						t.Fatalf("%s: %v", name, err)
					}
					stand.Equal(t, name+": advisory locks after the refusal", locked(), 0)
					stand.Must(t, gormlock.LockRow(held(), &seat{ID: 3}, gormlock.Try()))
					stand.Equal(t, name+": advisory locks of a row that is free", locked(), 1)
					var limit string
					stand.MustDo(t, tx.Raw("show lock_timeout").Scan(&limit))
					stand.Equal(t, name+": lock_timeout", limit, "12345ms")
				})
			}
		}
	})
	t.Run("no savepoint is left where the advisory lock fails", func(t *testing.T) {
		key := pgtest.Key(t)
		if _, err := other.Conn.Exec(t.Context(), "select pg_advisory_lock($1)", keyID(t, key)); err != nil {
			t.Fatal(err)
		}
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.MustDo(t, tx.Exec("savepoint gormlock"))
			stand.MustDo(t, tx.Exec("set local application_name = 'behind'; set local statement_timeout = '30ms'"))
			err := tx.Scopes(gormlock.WithXactLock(key), rowLockOf(gormlock.Try())).Find(&[]seat{}).Error
			if !stand.FromServer(err) {
				t.Fatal(err)
			}
			stand.MustDo(t, tx.Exec("rollback to savepoint gormlock"))
			var name string
			stand.MustDo(t, tx.Raw("show application_name").Scan(&name))
			if name == "behind" {
				t.Error("the savepoint of the program is not the last one")
			}
		})
		if _, err := other.Conn.Exec(t.Context(), "select pg_advisory_unlock_all()"); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a ctx that ends just before the savepoint is released leaves none", func(t *testing.T) {
		stand.Must(t, db.Callback().Query().After("gorm:query").Before("gormlock:after_read").Register("test:late", func(db *gorm.DB) {
			if ctx, is := db.Statement.Context.(*endingContext); is {
				ctx.ends.Store(true)
			}
		}))
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.MustDo(t, tx.Exec("savepoint gormlock"))
			stand.MustDo(t, tx.Exec("set local lock_timeout = '12345ms'"))
			inner, cancel := context.WithCancel(t.Context())
			defer cancel()
			if err := tx.WithContext(&endingContext{Context: inner, end: cancel}).Scopes(rowLockOf(gormlock.Timeout(time.Second))).Find(&[]seat{}).Error; stand.FromServer(err) {
				t.Fatal(err)
			}
			var limit string
			stand.MustDo(t, tx.Raw("show lock_timeout").Scan(&limit))
			stand.Equal(t, "lock_timeout", limit, "12345ms")
			stand.MustDo(t, tx.Exec("rollback to savepoint gormlock"))
			stand.MustDo(t, tx.Raw("show lock_timeout").Scan(&limit))
			stand.Equal(t, "lock_timeout before the program's savepoint", limit, "0")
		})
	})
	t.Run("a ctx that ends during the wait is the ctx's error", func(t *testing.T) {
		release := other.Hold("select from seats where id = 2 for update")
		defer release()
		stand.InTx(t, db, func(tx *gorm.DB) {
			ctx, cancel := context.WithCancel(t.Context())
			pid := backendPID(t, tx)
			found := make(chan error, 1)
			go func() {
				found <- tx.WithContext(ctx).Scopes(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Timeout(longWait))).Find(&[]seat{}).Error
			}()
			pgtest.WaitBackendBlocked(t, pid)
			cancel()
			if err := <-found; !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		})
	})
}

// endingContext ends right after somebody has found that it has not.
type endingContext struct {
	context.Context
	ends atomic.Bool
	end  func()
}

func (c *endingContext) Err() error {
	err := c.Context.Err()
	if c.ends.Load() {
		c.end()
	}
	return err
}

func rowLockOf(wait gormlock.RowLockOption) func(*gorm.DB) *gorm.DB {
	return gormlock.WithRowLock(gormlock.ForUpdate, wait)
}

func keyID(t testing.TB, key lockkey.Key) int64 {
	t.Helper()
	id, ok := key.Int64()
	if !ok {
		t.Fatalf("%s is no bigint", key)
	}
	return id
}

func backendPID(t testing.TB, tx *gorm.DB) (pid int) {
	t.Helper()
	if err := tx.Raw("select pg_backend_pid()").Row().Scan(&pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

// TestRowLockDefaultTimeout: the plugin's bound holds for row locks that name none.
func TestRowLockDefaultTimeout(t *testing.T) {
	t.Parallel()
	seats(t)
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New(gormlock.DefaultTimeout(shortWait))), pgtest.Schema())
	other := stand.NewRowRival(t)
	other.Hold("select from seats where id = 2 for update")
	stand.InTx(t, db, func(tx *gorm.DB) {
		err := tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Find(&[]seat{}).Error
		if !errors.Is(err, gormlock.ErrLockTimeout) {
			t.Fatal(err)
		}
		stand.MustDo(t, tx.Scopes(gormlock.WithSkipLocked()).Find(&[]seat{}))
		_, err = tx.Model(&seat{}).Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Rows() //nolint:sqlclosecheck,rowserrcheck // there are none
		if err == nil || !strings.Contains(err.Error(), "DefaultTimeout") {
			t.Errorf("Rows within the plugin's bound: %v", err)
		}
	})
}

// TestRowLockRows: while rows are open nothing can be executed behind them (G21).
func TestRowLockRows(t *testing.T) {
	t.Parallel()
	db := seats(t)
	other := stand.NewRowRival(t)
	stand.InTx(t, db, func(tx *gorm.DB) {
		_, err := tx.Model(&seat{}).Scopes(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Timeout(time.Second))).Rows() //nolint:sqlclosecheck,rowserrcheck // there are none
		if err == nil || stand.FromServer(err) {
			t.Fatalf("Rows within a timeout: %v", err)
		}
		var names []string
		if err := tx.Model(&seat{}).Scopes(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Try())).Select("name").Scan(&names).Error; err == nil {
			t.Fatal("Scan that tries")
		}
		stand.MustDo(t, tx.Model(&seat{}).Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Where("id < 3").Select("name").Scan(&names))
		if locked := other.Locked("seats"); len(names) != 2 || len(locked) != 2 {
			t.Fatalf("scanned %d, locked %v", len(names), locked)
		}
		stand.MustDo(t, tx.Model(&seat{}).Scopes(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Timeout(time.Second))).Where("id = 3").Pluck("name", &names))
		if locked := other.Locked("seats"); len(locked) != 3 {
			t.Fatalf("locked %v", locked)
		}
	})
	if err := db.Model(&seat{}).Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Scan(&[]seat{}).Error; !errors.Is(err, gormlock.ErrNoTransaction) {
		t.Fatal(err)
	}
}
