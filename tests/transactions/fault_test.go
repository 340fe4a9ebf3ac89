package transactions_test

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/lockkey"
)

// faultBench is a database with a pool of one connection behind a proxy.
type faultBench struct {
	db    *gorm.DB
	proxy *wiretap.Proxy
	key   lockkey.Key
}

func newFaultBench(t *testing.T, opts ...pgtest.Option) *faultBench {
	t.Helper()
	proxy, dsn := pgtest.Tap(t, pgtest.DSN(t))
	plugin := gormlock.New()
	t.Cleanup(func() { _ = plugin.Close() })
	opts = append(opts, pgtest.Through(dsn), pgtest.MaxConns(1), pgtest.Plugin(plugin))
	return &faultBench{db: pgtest.Open(t, opts...), proxy: proxy, key: pgtest.Key(t)}
}

// assertRecovered says that nothing of a failed transaction is left: no lock, no connection in use, a pool that works.
func (b *faultBench) assertRecovered(t *testing.T) {
	t.Helper()
	b.proxy.OnQuery(nil)
	b.proxy.Resume()
	pgtest.AssertFree(t, b.key)
	pool, err := b.db.DB()
	if err != nil {
		t.Fatal(err)
	}
	// database/sql counts a connection that it is still closing as in use.
	for start := time.Now(); pool.Stats().InUse != 0; runtime.Gosched() {
		if time.Since(start) > 10*time.Second {
			t.Fatalf("%d connections are still in use", pool.Stats().InUse)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err = gormlock.Transaction(b.db.WithContext(ctx), func(tx *gorm.DB) error {
		return tx.Exec("SELECT 1").Error
	}, gormlock.Locking(b.key, gormlock.Try()))
	if err != nil {
		t.Fatalf("the next transaction: %v", err)
	}
	var locks, status string
	if err := b.db.Raw("SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'").Scan(&locks).Error; err != nil || locks != "0" {
		t.Fatalf("the pool's session holds %s locks, %v", locks, err)
	}
	if err := b.db.Raw("SHOW lock_timeout").Scan(&status).Error; err != nil || status != "0" {
		t.Fatalf("lock_timeout is %s, %v", status, err)
	}
}

func TestTransactionWhenCtxEnds(t *testing.T) {
	t.Parallel()
	type phase struct {
		name string
		run  func(t *testing.T, b *faultBench, begin func(context.Context, func(*gorm.DB) error) error)
		// unlocked phases make sense without a lock too.
		unlocked bool
	}
	phases := []phase{
		{"before the begin", func(t *testing.T, b *faultBench, begin func(context.Context, func(*gorm.DB) error) error) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			b.proxy.Reset()
			wantCanceled(t, begin(ctx, func(*gorm.DB) error { t.Error("fn ran"); return nil }))
			if got := b.proxy.Statements(); len(got) != 0 {
				t.Errorf("executed %q", got)
			}
		}, true},
		{"while it waits for the lock", func(t *testing.T, b *faultBench, begin func(context.Context, func(*gorm.DB) error) error) {
			ctx, cancel := context.WithCancel(context.Background())
			release := rival(t, b.key)
			go func() {
				pgtest.WaitBlocked(t, b.key, 1)
				cancel()
			}()
			wantCanceled(t, begin(ctx, func(*gorm.DB) error { t.Error("fn ran"); return nil }))
			release()
		}, false},
		{"between statements: the server is free while fn goes on", func(t *testing.T, b *faultBench, begin func(context.Context, func(*gorm.DB) error) error) {
			ctx, cancel := context.WithCancel(context.Background())
			wantCanceled(t, begin(ctx, func(tx *gorm.DB) error {
				if err := tx.Exec("SELECT 1").Error; err != nil {
					t.Error(err)
				}
				pid := backend(t, tx)
				cancel()
				pgtest.AssertFree(t, b.key)
				waitNotInTransaction(t, pid)
				wantCanceled(t, tx.WithContext(context.Background()).Exec("SELECT 1").Error)
				return nil
			}))
		}, true},
		{"during a statement", func(t *testing.T, b *faultBench, begin func(context.Context, func(*gorm.DB) error) error) {
			ctx, cancel := context.WithCancel(context.Background())
			elsewhere := pgtest.Key(t)
			release := rival(t, elsewhere)
			id, _ := elsewhere.Int64()
			wantCanceled(t, begin(ctx, func(tx *gorm.DB) error {
				go func() {
					pgtest.WaitBlocked(t, elsewhere, 1)
					cancel()
				}()
				err := tx.Exec("SELECT pg_advisory_xact_lock(?)", id).Error
				wantCanceled(t, err)
				return err
			}))
			release()
		}, true},
		{"with open rows", func(t *testing.T, b *faultBench, begin func(context.Context, func(*gorm.DB) error) error) {
			ctx, cancel := context.WithCancel(context.Background())
			wantCanceled(t, begin(ctx, func(tx *gorm.DB) error {
				n, err := readAll(tx.WithContext(context.Background()), cancel)
				if err != nil || n != 100000 {
					t.Errorf("rows opened under another ctx: %d rows, %v", n, err)
				}
				pgtest.AssertFree(t, b.key)
				return nil
			}))
		}, true},
		{"during the commit", func(t *testing.T, b *faultBench, begin func(context.Context, func(*gorm.DB) error) error) {
			ctx, cancel := context.WithCancel(context.Background())
			wantCanceled(t, begin(ctx, func(tx *gorm.DB) error {
				b.proxy.OnQuery(func(query string) wiretap.Action {
					if strings.Contains(strings.ToLower(query), "commit") {
						cancel()
						return wiretap.HoldAnswer
					}
					return wiretap.Pass
				})
				return nil
			}))
		}, true},
		{"after the commit", func(t *testing.T, b *faultBench, begin func(context.Context, func(*gorm.DB) error) error) {
			ctx, cancel := context.WithCancel(context.Background())
			if err := begin(ctx, func(tx *gorm.DB) error { return tx.Exec("SELECT 1").Error }); err != nil {
				t.Error(err)
			}
			cancel()
		}, true},
	}
	for _, p := range phases {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for _, level := range []sql.IsolationLevel{sql.LevelDefault, sql.LevelRepeatableRead} {
				t.Run("Locking, "+level.String(), func(t *testing.T) {
					b := newFaultBench(t)
					p.run(t, b, func(ctx context.Context, fn func(*gorm.DB) error) error {
						return gormlock.Transaction(b.db.WithContext(ctx), fn, gormlock.Locking(b.key), gormlock.Isolation(level))
					})
					b.assertRecovered(t)
				})
			}
			if !p.unlocked {
				return
			}
			t.Run("db.Transaction", func(t *testing.T) {
				b := newFaultBench(t)
				p.run(t, b, func(ctx context.Context, fn func(*gorm.DB) error) error {
					return b.db.WithContext(ctx).Transaction(fn)
				})
				b.assertRecovered(t)
			})
			t.Run("PrepareStmt", func(t *testing.T) {
				b := newFaultBench(t, pgtest.PrepareStmt())
				p.run(t, b, func(ctx context.Context, fn func(*gorm.DB) error) error {
					return b.db.WithContext(ctx).Transaction(fn)
				})
				b.assertRecovered(t)
			})
		})
	}
}

// TestTransactionForgottenByTheCaller: the end of ctx frees a transaction that nobody commits or rolls back.
func TestTransactionForgottenByTheCaller(t *testing.T) {
	t.Parallel()
	b := newFaultBench(t)
	ctx, cancel := context.WithCancel(context.Background())
	tx := b.db.WithContext(ctx).Begin()
	if err := gormlock.AcquireXactLock(tx, []lockkey.Key{b.key}); err != nil {
		t.Fatal(err)
	}
	cancel()
	b.assertRecovered(t)
	wantCanceled(t, tx.Commit().Error)
}

func TestTransactionWhenTheConnectionDies(t *testing.T) {
	t.Parallel()
	for name, during := range map[string]struct {
		query  string
		action wiretap.Action
	}{
		"begin, unseen by the server":  {"pg_advisory_xact_lock", wiretap.CutRequest},
		"begin, answer lost":           {"pg_advisory_xact_lock", wiretap.CutAnswer},
		"statement, unseen":            {"SELECT 42", wiretap.CutRequest},
		"statement, answer lost":       {"SELECT 42", wiretap.CutAnswer},
		"commit, unseen by the server": {"COMMIT", wiretap.CutRequest},
		"commit, answer lost":          {"COMMIT", wiretap.CutAnswer},
		"rollback, unseen":             {"ROLLBACK", wiretap.CutRequest},
		"rollback, answer lost":        {"ROLLBACK", wiretap.CutAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFaultBench(t)
			b.proxy.OnQuery(func(query string) wiretap.Action {
				if strings.Contains(query, during.query) {
					return during.action
				}
				return wiretap.Pass
			})
			err := gormlock.Transaction(b.db, func(tx *gorm.DB) error {
				if err := tx.Exec("SELECT 42").Error; err != nil {
					return err
				}
				if during.query == "ROLLBACK" {
					return errOwn
				}
				return nil
			}, gormlock.Locking(b.key))
			if err == nil {
				t.Error("no error")
			}
			if during.query == "ROLLBACK" && !errors.Is(err, errOwn) {
				t.Errorf("a rollback that fails hides why: %v", err)
			}
			b.assertRecovered(t)
		})
	}
	t.Run("backend terminated in the middle", func(t *testing.T) {
		t.Parallel()
		b := newFaultBench(t)
		err := gormlock.Transaction(b.db, func(tx *gorm.DB) error {
			pgtest.Kill(t, backend(t, tx))
			return nil
		}, gormlock.Locking(b.key))
		if err == nil {
			t.Error("a commit on a dead connection succeeded")
		}
		b.assertRecovered(t)
	})
	t.Run("backend terminated while it waits", func(t *testing.T) {
		t.Parallel()
		b := newFaultBench(t)
		release := rival(t, b.key)
		go func() {
			pgtest.WaitBlocked(t, b.key, 1)
			for _, lock := range pgtest.Locks(t, b.key) {
				if !lock.Granted {
					pgtest.Kill(t, lock.PID)
				}
			}
		}()
		err := gormlock.Transaction(b.db, func(*gorm.DB) error { return nil }, gormlock.Locking(b.key))
		if err == nil {
			t.Error("no error")
		}
		release()
		b.assertRecovered(t)
	})
}

// TestTransactionKeepsItsConnection through everything that the server answers in good order.
func TestTransactionKeepsItsConnection(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(t *testing.T, b *faultBench) error{
		"timeout in the begin": func(t *testing.T, b *faultBench) error {
			defer rival(t, b.key)()
			return gormlock.Transaction(b.db, func(*gorm.DB) error { return nil }, gormlock.Locking(b.key, gormlock.Timeout(time.Millisecond)))
		},
		"timeout in the begin at REPEATABLE READ": func(t *testing.T, b *faultBench) error {
			defer rival(t, b.key)()
			return gormlock.Transaction(b.db, func(*gorm.DB) error { return nil },
				gormlock.Locking(b.key, gormlock.Timeout(time.Millisecond)), gormlock.Isolation(sql.LevelRepeatableRead))
		},
		"try in the begin": func(t *testing.T, b *faultBench) error {
			defer rival(t, b.key)()
			return gormlock.Transaction(b.db, func(*gorm.DB) error { return nil }, gormlock.Locking(b.key, gormlock.Try()))
		},
		"try in the begin at SERIALIZABLE": func(t *testing.T, b *faultBench) error {
			defer rival(t, b.key)()
			return gormlock.Transaction(b.db, func(*gorm.DB) error { return nil },
				gormlock.Locking(b.key, gormlock.Try()), gormlock.Isolation(sql.LevelSerializable))
		},
		"an aborted transaction committed": func(_ *testing.T, b *faultBench) error {
			return gormlock.Transaction(b.db, func(tx *gorm.DB) error {
				_ = tx.Exec("SELECT 1/0").Error
				return nil
			}, gormlock.Locking(b.key))
		},
		"a write in a read-only transaction": func(_ *testing.T, b *faultBench) error {
			return gormlock.Transaction(b.db, func(tx *gorm.DB) error {
				return tx.Exec("CREATE TABLE nowhere ()").Error
			}, gormlock.Locking(b.key), gormlock.ReadOnly())
		},
		"fn fails": func(_ *testing.T, b *faultBench) error {
			return gormlock.Transaction(b.db, func(*gorm.DB) error { return errOwn }, gormlock.Locking(b.key))
		},
		"fn panics": func(_ *testing.T, b *faultBench) (err error) {
			defer func() { err, _ = recover().(error) }()
			return gormlock.Transaction(b.db, func(*gorm.DB) error { panic(errOwn) }, gormlock.Locking(b.key))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFaultBench(t)
			before := backend(t, b.db)
			if err := fail(t, b); err == nil {
				t.Error("no error")
			}
			b.assertRecovered(t)
			if after := backend(t, b.db); after != before {
				t.Errorf("the connection was given up: backend %d, then %d", before, after)
			}
		})
	}
}

var errOwn = errors.New("the caller's own error")

func wantCanceled(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

// readAll reads 100,000 rows and calls onFirst after the first.
func readAll(tx *gorm.DB, onFirst func()) (n int, err error) {
	rows, err := tx.Raw("SELECT generate_series(1, 100000)").Rows()
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if n++; n == 1 {
			onFirst()
		}
	}
	return n, rows.Err()
}

// rival holds the key in another session until the returned function is called.
func rival(t *testing.T, key lockkey.Key) (release func()) {
	t.Helper()
	conn := pgtest.Conn(t)
	ctx := context.Background()
	id, _ := key.Int64()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", id); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", id); err != nil {
			t.Error(err)
		}
	}
}

// backend is the pid of the server process behind tx.
func backend(t *testing.T, tx *gorm.DB) int {
	t.Helper()
	var pid int
	if err := tx.Raw("SELECT pg_backend_pid()").Scan(&pid).Error; err != nil {
		t.Fatal(err)
	}
	return pid
}

// waitNotInTransaction waits until the backend is idle or gone.
func waitNotInTransaction(t *testing.T, pid int) {
	t.Helper()
	conn := pgtest.Conn(t)
	for start := time.Now(); ; {
		var open int
		err := conn.QueryRow(context.Background(), "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND state LIKE '%transaction%'", pid).Scan(&open)
		if err != nil {
			t.Fatal(err)
		}
		if open == 0 {
			return
		}
		if time.Since(start) > 10*time.Second {
			t.Fatalf("backend %d is still in a transaction", pid)
		}
	}
}
