package locks_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

var begins = []mode{modes[0], modes[1], modes[2]}

// TestRoundTrips_Begin: a lock in a transaction that is opened for it travels with the BEGIN. V8 P25
func TestRoundTrips_Begin(t *testing.T) {
	t.Parallel()
	beside(t, begins, func(t *testing.T, m mode) {
		s := m.lookout(t, pgtest.MaxConns(1))
		a, b, pair := pgtest.Key(t), pgtest.Key(t), pgtest.PairKey(t)
		scopes := map[string][]func(*gorm.DB) *gorm.DB{
			"one lock":            {gormlock.WithXactLock(a)},
			"several, a timeout":  {gormlock.WithXactLock(a, gormlock.Timeout(time.Minute)), gormlock.WithXactLock(b), gormlock.WithXactLock(pair, gormlock.Shared())},
			"several, not waited": {gormlock.WithXactLock(a, gormlock.Try()), gormlock.WithXactLock(b, gormlock.Try())},
			"one, not waited":     {gormlock.WithXactLock(pair, gormlock.Try())},
		}
		w := s.seed(t)
		statements := map[string]func(db *gorm.DB) error{
			"create": func(db *gorm.DB) error { return db.Create(&widget{Name: "new"}).Error },
			"update": func(db *gorm.DB) error { return db.Model(&widget{}).Where("id = ?", w.ID).Update("n", 1).Error },
			"save":   func(db *gorm.DB) error { return db.Save(&widget{ID: w.ID, Name: "x"}).Error },
			"delete": func(db *gorm.DB) error { return db.Delete(&widgetPart{}, w.ID+1_000_000).Error },
		}
		for name, run := range statements {
			without, _ := stand.RoundTrips(t, s.proxy, func() error { return run(s.db) })
			if without != 3 {
				t.Errorf("%s without a lock: %d round trips", name, without)
			}
			for locks, scopes := range scopes {
				if with, executed := stand.RoundTrips(t, s.proxy, func() error { return run(s.db.Scopes(scopes...)) }); with != without || countLocks(executed) != 1 {
					t.Errorf("%s with %s: %d round trips, without %d: %q", name, locks, with, without, executed)
				}
			}
		}
		body := func(tx *gorm.DB) error { return tx.Find(&[]widget{}, w.ID).Error }
		for _, level := range []sql.IsolationLevel{sql.LevelDefault, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
			without, _ := stand.RoundTrips(t, s.proxy, func() error { return s.db.Transaction(body, &sql.TxOptions{Isolation: level}) })
			for name, opts := range map[string][]gormlock.TxOption{
				"no lock":        nil,
				"one lock":       {gormlock.Locking(a)},
				"several":        {gormlock.Locking(a), gormlock.Locking(b, gormlock.Shared()), gormlock.Locking(pair)},
				"with a timeout": {gormlock.Locking(a, gormlock.Timeout(time.Minute)), gormlock.Locking(b)},
				"not waited":     {gormlock.Locking(a, gormlock.Try())},
				"several, tried": {gormlock.Locking(a, gormlock.Try()), gormlock.Locking(pair, gormlock.Try())},
				"read only":      {gormlock.Locking(a), gormlock.ReadOnly()},
			} {
				with, executed := stand.RoundTrips(t, s.proxy, func() error {
					return gormlock.Transaction(s.db, body, append(opts, gormlock.Isolation(level), gormlock.Attempts(3))...)
				})
				if with != without {
					t.Errorf("Transaction at %s, %s: %d round trips, without %d: %q", level, name, with, without, executed)
				}
			}
		}
	})
}

// TestRoundTrips_OpenTransaction: one, whatever the number of keys and the way to wait.
func TestRoundTrips_OpenTransaction(t *testing.T) {
	t.Parallel()
	beside(t, begins, func(t *testing.T, m mode) {
		s := m.lookout(t)
		taken := pgtest.Key(t)
		rivalHolds(t, exclusively, taken)
		for _, n := range []int{1, 2, 100} {
			var keys []lockkey.Key
			for i := range n {
				keys = append(keys, pgtest.Key(t, i))
			}
			for i, opts := range [][]gormlock.LockOption{nil, {gormlock.Try()}, {gormlock.Timeout(time.Minute)}, {gormlock.Shared()}, {gormlock.Shared(), gormlock.Try()}} {
				t.Run(fmt.Sprintf("%d keys, options %d", n, i), func(t *testing.T) {
					err := s.db.Transaction(func(tx *gorm.DB) error {
						got, executed := stand.RoundTrips(t, s.proxy, func() error { return gormlock.AcquireXactLock(tx, keys, opts...) })
						if got != 1 {
							t.Errorf("AcquireXactLock: %d round trips: %q", got, executed)
						}
						read := func(db *gorm.DB) error { return db.Find(&[]widget{}, 1).Error }
						without, _ := stand.RoundTrips(t, s.proxy, func() error { return read(tx) })
						var scopes []func(*gorm.DB) *gorm.DB
						for _, key := range keys {
							scopes = append(scopes, gormlock.WithXactLock(key, opts...))
						}
						with, executed := stand.RoundTrips(t, s.proxy, func() error { return read(tx.Scopes(scopes...)) })
						if with != without+1 {
							t.Errorf("a statement with locks: %d round trips, without %d: %q", with, without, executed)
						}
						if n == 1 {
							refused, executed := stand.RoundTrips(t, s.proxy, func() error {
								if gormlock.AcquireXactLock(tx, []lockkey.Key{taken}, gormlock.Try()) == nil {
									t.Error("acquired what a rival holds")
								}
								return nil
							})
							if refused != 1 {
								t.Errorf("a Try that is refused: %d round trips: %q", refused, executed)
							}
						}
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
		}
	})
}

// TestRoundTrips_Unused: without a lock everything that goes to the server is what goes there without the plugin.
func TestRoundTrips_Unused(t *testing.T) {
	t.Parallel()
	beside(t, modes, func(t *testing.T, m mode) {
		s := m.lookout(t, pgtest.MaxConns(1))
		through, err := s.proxy.DSN(pgtest.SchemaDSN(t))
		if err != nil {
			t.Fatal(err)
		}
		plain := pgtest.Open(t, append(m.opts, pgtest.Through(through), pgtest.MaxConns(1))...)
		if m.session != nil {
			plain = plain.Session(m.session)
		}
		whole := map[string]func(*gorm.DB, *widget) error{
			"transaction": func(db *gorm.DB, w *widget) error {
				return db.Transaction(func(tx *gorm.DB) error {
					return tx.Transaction(func(tx *gorm.DB) error { return tx.Create(&widget{}).Error })
				})
			},
			"transaction at SERIALIZABLE": func(db *gorm.DB, w *widget) error {
				return db.Transaction(func(tx *gorm.DB) error { return tx.First(&widget{}, w.ID).Error }, &sql.TxOptions{Isolation: sql.LevelSerializable, ReadOnly: true})
			},
			"rolled back": func(db *gorm.DB, _ *widget) error {
				tx := db.Begin()
				tx.Create(&widget{})
				return tx.Rollback().Error
			},
		}
		for _, op := range operations {
			whole[op.name] = op.run
		}
		for name, run := range whole {
			cost := func(db *gorm.DB) (int, []string) {
				return stand.RoundTrips(t, s.proxy, func() error {
					w := s.seed(t)
					if err := run(db, w); err != nil && err != errInner { //nolint:errorlint // it comes back as it is
						return err
					}
					return nil
				})
			}
			with, executed := cost(s.db)
			without, plainly := cost(plain)
			// GORM prepares anew in each transaction; on our pool it need not.
			fewer := with < without && (m.session != nil || m.name == "PrepareStmt")
			if with != without && !fewer || len(executed) != len(plainly) {
				t.Errorf("%s: %d round trips, without the plugin %d:\n%q\n%q", name, with, without, executed, plainly)
			}
			if i := slices.IndexFunc(executed, func(sql string) bool { return strings.Contains(sql, "gormlock") || strings.Contains(sql, "advisory") }); i >= 0 {
				t.Errorf("%s: executed %q", name, executed[i])
			}
		}
	})
}
