package locks_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/lockkey"
)

// failures are the errors of a lock in an open transaction, and how to get them.
var failures = []struct {
	want  error
	level sql.IsolationLevel
	opts  []gormlock.LockOption
	key   func(taken lockkey.Key) lockkey.Key
}{
	{gormlock.ErrNotAcquired, 0, []gormlock.LockOption{gormlock.Try()}, nil},
	{gormlock.ErrLockTimeout, 0, []gormlock.LockOption{gormlock.Timeout(time.Millisecond)}, nil},
	{gormlock.ErrSnapshotTaken, sql.LevelRepeatableRead, nil, nil},
	{gormlock.ErrOption, 0, []gormlock.LockOption{gormlock.Timeout(0)}, nil},
	{lockkey.ErrInvalid, 0, nil, func(lockkey.Key) lockkey.Key { return gormlock.Key() }},
}

// TestG23_ErrorsStayInTheChain: through every door, nested transactions, TranslateError, and what fails afterwards.
func TestG23_ErrorsStayInTheChain(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]pgtest.Option{
		"default":        nil,
		"TranslateError": {pgtest.Config(func(c *gorm.Config) { c.TranslateError = true })},
		"PrepareStmt":    {pgtest.PrepareStmt()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLookout(t, opts...)
			taken := pgtest.Key(t)
			rivalHolds(t, exclusively, taken)
			for _, f := range failures {
				key := taken
				if f.key != nil {
					key = f.key(taken)
				}
				for _, d := range everyDoor {
					t.Run(fmt.Sprint(f.want, "/", d.name), func(t *testing.T) {
						if !d.inside {
							if f.want == gormlock.ErrSnapshotTaken { //nolint:errorlint // it is the one of the table
								return
							}
							if err := d.acquire(s.db, key, f.opts...); !errors.Is(err, f.want) {
								t.Errorf("err = %v", err)
							}
							return
						}
						err := s.db.Transaction(func(tx *gorm.DB) error {
							return tx.Transaction(func(tx *gorm.DB) error { return d.acquire(tx, key, f.opts...) })
						}, &sql.TxOptions{Isolation: f.level})
						if !errors.Is(err, f.want) {
							t.Errorf("nested: %v", err)
						}
						err = gormlock.Transaction(s.db, func(tx *gorm.DB) error { return d.acquire(tx, key, f.opts...) },
							gormlock.Isolation(f.level), gormlock.Attempts(2))
						if !errors.Is(err, f.want) {
							t.Errorf("Transaction: %v", err)
						}
					})
				}
			}
			t.Run("ErrNoTransaction", func(t *testing.T) {
				if err := s.db.Scopes(gormlock.WithXactLock(taken)).First(&widget{}).Error; !errors.Is(err, gormlock.ErrNoTransaction) {
					t.Error(err)
				}
			})
		})
	}
}

// TestG23_AFailingRollback joins its error, and GORM's way to join drops the first from the chain.
func TestG23_AFailingRollback(t *testing.T) {
	t.Parallel()
	s := newLookout(t)
	taken := pgtest.Key(t)
	rivalHolds(t, exclusively, taken)
	s.proxy.OnQuery(func(sql string) wiretap.Action {
		if strings.EqualFold(sql, "rollback") {
			return wiretap.CutRequest
		}
		return wiretap.Pass
	})
	err := gormlock.Transaction(s.db, func(tx *gorm.DB) error {
		return tx.Scopes(gormlock.WithXactLock(taken, gormlock.Try())).Create(&widget{}).Error
	})
	if !errors.Is(err, gormlock.ErrNotAcquired) {
		t.Errorf("Transaction: %v", err)
	}
	err = s.db.Transaction(func(tx *gorm.DB) error {
		return gormlock.AcquireXactLock(tx, []lockkey.Key{taken}, gormlock.Timeout(time.Millisecond))
	})
	if !errors.Is(err, gormlock.ErrLockTimeout) {
		t.Errorf("db.Transaction: %v", err)
	}
	err = s.db.Scopes(gormlock.WithXactLock(taken, gormlock.Try())).Create(&widget{}).Error
	if !errors.Is(err, gormlock.ErrNotAcquired) {
		t.Errorf("implicit: %v", err)
	}
	// Here the lock comes after the BEGIN, and GORM joins the error of its rollback to ours.
	through, err := s.proxy.DSN(pgtest.SchemaDSN(t))
	if err != nil {
		t.Fatal(err)
	}
	plain := pgtest.Open(t, pgtest.Through(through), pgtest.Plugin(gormlock.New(gormlock.PlainTransactions())))
	for name, run := range map[string]func(db *gorm.DB) error{
		"create": func(db *gorm.DB) error { return db.Create(&widget{}).Error },
		"update": func(db *gorm.DB) error { return db.Model(&widget{ID: 1}).Update("n", 1).Error },
		"delete": func(db *gorm.DB) error { return db.Delete(&widget{}, 1).Error },
	} {
		err = run(plain.Scopes(gormlock.WithXactLock(taken, gormlock.Try())))
		if !errors.Is(err, gormlock.ErrNotAcquired) || !strings.Contains(err.Error(), ";") {
			t.Errorf("%s: %v, want two errors of which one is ErrNotAcquired", name, err)
		}
	}
	s.proxy.OnQuery(nil)
	if err := errors.Join(s.db.Create(&widget{}).Error, plain.Create(&widget{}).Error); err != nil {
		t.Errorf("the pools afterwards: %v", err)
	}
}

// TestErrorCarriesTheServers: errors.As finds the driver's error, and with it the SQLSTATE, behind ours.
func TestErrorCarriesTheServers(t *testing.T) {
	t.Parallel()
	s := newLookout(t)
	taken := pgtest.Key(t)
	rivalHolds(t, exclusively, taken)
	for _, d := range everyDoor {
		err := s.db.Transaction(func(tx *gorm.DB) error {
			if !d.inside {
				return d.acquire(s.db, taken, gormlock.Timeout(time.Millisecond))
			}
			return d.acquire(tx, taken, gormlock.Timeout(time.Millisecond))
		})
		var coded interface{ SQLState() string }
		if !errors.As(err, &coded) || coded.SQLState() != "55P03" {
			t.Errorf("%s: %v", d.name, err)
		}
	}
}

// TestErrorTexts say what, which and against what.
func TestErrorTexts(t *testing.T) {
	t.Parallel()
	s := newLookout(t)
	key := lockkey.Of("error texts", 42)
	other := lockkey.Pair(7, 42)
	rivalHolds(t, exclusively, key)
	many := []lockkey.Key{key}
	for i := range 5 {
		many = append(many, lockkey.Of("error texts", 42, i))
	}
	in := func(opts *sql.TxOptions, run func(tx *gorm.DB) error) error { return s.db.Transaction(run, opts) }
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	name := key.String()
	for _, c := range []struct {
		err  error
		want string
	}{
		{in(nil, func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, []lockkey.Key{key}, gormlock.Try()) }),
			"gormlock: lock " + name + ": held by another session"},
		{in(nil, func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, many, gormlock.Try()) }),
			"gormlock: lock " + name + ": held by another session"},
		{in(nil, func(tx *gorm.DB) error {
			return gormlock.AcquireXactLock(tx, []lockkey.Key{key}, gormlock.Timeout(5*time.Millisecond))
		}), "gormlock: lock " + name + ": lock wait timed out, after 5ms"},
		{in(nil, func(tx *gorm.DB) error {
			return tx.Exec("set local lock_timeout = 5").Scopes(gormlock.WithXactLock(key)).Exec("select 1").Error
		}), "gormlock: lock " + name + ": lock wait timed out, after the session's lock_timeout"},
		{in(&sql.TxOptions{Isolation: sql.LevelRepeatableRead}, func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, []lockkey.Key{other}) }),
			"gormlock: lock " + other.String() + ": the snapshot is older than the lock, isolation level repeatable read"},
		{s.db.Scopes(gormlock.WithXactLock(other)).First(&widget{}).Error,
			"gormlock: no transaction is open, run this inside db.Transaction: lock " + other.String()},
		{s.plain.Scopes(gormlock.WithXactLock(other)).First(&widget{}).Error,
			"gormlock: the plugin is not installed, call db.Use(gormlock.New())"},
		{in(nil, func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx.WithContext(ended), []lockkey.Key{other}) }),
			"gormlock: lock " + other.String() + ": context canceled, not asked for"},
		{gormlock.Transaction(s.db, func(*gorm.DB) error { return nil }, gormlock.Locking(key, gormlock.Try()), gormlock.Attempts(2), gormlock.RetryIf(func(error) bool { return true })),
			"gormlock: gave up after 2 attempts: lock " + name + ": held by another session"},
		{gormlock.Touch(s.db, &widget{ID: 1}), "gormlock: Touch: widget has no version field: version missing"},
		{s.db.Scopes(gormlock.WithXactLock(other, gormlock.Timeout(-1))).Create(&widget{}).Error,
			"gormlock: invalid lock option: Timeout(-1ns) leaves no time, use Try to not wait"},
	} {
		if c.err == nil || c.err.Error() != c.want {
			t.Errorf("\n got %v\nwant %s", c.err, c.want)
		}
	}
	err := in(nil, func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, many, gormlock.Timeout(time.Millisecond)) })
	if err == nil || !strings.Contains(err.Error(), "and 3 more: lock wait timed out, after 1ms") {
		t.Errorf("many keys: %v", err)
	}
}
