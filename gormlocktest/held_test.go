package gormlocktest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/gormlocktest"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

func TestRival(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()))
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]lockkey.Key{
		"a name": pgtest.Key(t), "a negative number": lockkey.Int64(-pgtestID(t)), "a pair": pgtest.PairKey(t),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gormlocktest.AssertFree(t, pool, key)
			rival := gormlocktest.Hold(t, pool, key)
			gormlocktest.AssertHeld(t, pool, key)
			done := make(chan error, 1)
			go func() {
				done <- gormlock.Transaction(db, func(*gorm.DB) error { return nil }, gormlock.Locking(key))
			}()
			gormlocktest.WaitBlocked(t, pool, key, 1)
			rival.Release()
			rival.Release()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			gormlocktest.WaitFree(t, pool, key)
			gormlocktest.Hold(t, pool, key, gormlock.Shared())
			gormlocktest.Hold(t, pool, key, gormlock.Shared(), gormlock.Timeout(time.Second))
			if !gormlocktest.Held(t, pool, key) {
				t.Error("two shared holders, and nobody holds it")
			}
		})
	}
}

func pgtestID(t *testing.T) int64 {
	t.Helper()
	id, _ := pgtest.Key(t, "negative").Int64()
	return id &^ (-1 << 62)
}

// judged is a test that is only watched.
type judged struct {
	testing.TB
	errors, fatals []string
}

func (j *judged) Helper() {}

func (j *judged) Errorf(format string, args ...any) {
	j.errors = append(j.errors, fmt.Sprintf(format, args...))
}

func (j *judged) Fatal(args ...any) {
	j.fatals = append(j.fatals, fmt.Sprint(args...))
	panic(j)
}

func (j *judged) Fatalf(format string, args ...any) { j.Fatal(fmt.Sprintf(format, args...)) }

func (j *judged) Error(args ...any) { j.errors = append(j.errors, fmt.Sprint(args...)) }

// says fails t unless the test said one thing, with these words in it.
func (j *judged) says(t *testing.T, words string) {
	t.Helper()
	if said := slices.Concat(j.errors, j.fatals); len(said) != 1 || !strings.Contains(said[0], words) {
		t.Errorf("%q, want one with %q", said, words)
	}
}

func (j *judged) run(test func()) {
	defer func() {
		if reason := recover(); reason != nil && reason != any(j) {
			panic(reason)
		}
	}()
	test()
}

// TestAssertions: they fail where they should, and say what is needed to find out why.
func TestAssertions(t *testing.T) {
	t.Parallel()
	pool := pgtest.SQLDB(t)
	key := pgtest.Key(t)
	j := &judged{TB: t}
	j.run(func() { gormlocktest.AssertHeld(j, pool, key) })
	if len(j.errors) != 1 || !strings.Contains(j.errors[0], key.String()) {
		t.Errorf("AssertHeld of a free lock: %q", j.errors)
	}
	gormlocktest.Hold(t, pool, key)
	j = &judged{TB: t}
	j.run(func() { gormlocktest.AssertFree(j, pool, key) })
	if len(j.errors) != 1 || !strings.Contains(j.errors[0], "held by backend") {
		t.Errorf("AssertFree of a held lock: %q", j.errors)
	}
	j = &judged{TB: t}
	j.run(func() { gormlocktest.Hold(j, pool, key, gormlock.Try()) })
	if len(j.fatals) != 1 || !strings.Contains(j.fatals[0], "held by another session") {
		t.Errorf("Hold of a held lock: %q", j.fatals)
	}
	j = &judged{TB: t}
	j.run(func() { gormlocktest.AssertFree(j, pool, gormlock.Key()) })
	if len(j.fatals) != 1 {
		t.Errorf("a key that is none: %q", j.fatals)
	}
}

// TestLeaseIsNoAdvisoryLock: a key is free here while a lease on it is held, and its manager knows the holder.
func TestLeaseIsNoAdvisoryLock(t *testing.T) {
	t.Parallel()
	pool := pgtest.SQLDB(t, pgtest.Schema())
	key := pgtest.Key(t)
	if err := lease.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	leases, err := lease.New(t.Context(), pool, lease.Owner("somebody"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = leases.Close(context.WithoutCancel(t.Context())) }()
	if _, err := leases.Acquire(t.Context(), key, time.Minute); err != nil {
		t.Fatal(err)
	}
	gormlocktest.AssertFree(t, pool, key)
	if holder, held, err := leases.Holder(t.Context(), key); err != nil || !held || holder.Owner != "somebody" {
		t.Errorf("held %t by %v: %v", held, holder, err)
	}
}

// TestSessionLocks: they are held like any other, and their waiters are sessions of their managers.
func TestSessionLocks(t *testing.T) {
	t.Parallel()
	pool := pgtest.SQLDB(t)
	key := pgtest.Key(t)
	locks, err := sessionlock.Open(t.Context(), pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locks.Close(context.WithoutCancel(t.Context())) }()
	rival := gormlocktest.Hold(t, pool, key)
	done := make(chan error, 2)
	for range cap(done) {
		go func() { done <- locks.Do(t.Context(), key, func(context.Context) error { return nil }) }()
	}
	gormlocktest.WaitBlocked(t, pool, key, 1)
	rival.Release()
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	lock, err := locks.Acquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	gormlocktest.AssertHeld(t, pool, key)
	if err := lock.Release(t.Context()); err != nil {
		t.Error(err)
	}
	gormlocktest.WaitFree(t, pool, key)
}

// TestForgottenPlugin: without the plugin a stale write is stored, and nobody is told. With it there is an error.
func TestForgottenPlugin(t *testing.T) {
	t.Parallel()
	for name, forgotten := range map[string]bool{"forgotten": true, "installed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := gorm.Open(sqlite.Open("file:"+t.TempDir()+"/test.db"), &gorm.Config{Logger: logger.Discard})
			if err != nil {
				t.Fatal(err)
			}
			if !forgotten {
				if err := db.Use(gormlock.New()); err != nil {
					t.Fatal(err)
				}
			}
			mine := account{ID: 1, Version: 1}
			if err := errors.Join(db.AutoMigrate(&mine), db.Create(&mine).Error); err != nil {
				t.Fatal(err)
			}
			yours := mine
			if err := db.Model(&mine).Update("balance", 90).Error; err != nil {
				t.Fatal(err)
			}
			if err := db.Model(&yours).Update("balance", 95).Error; errors.Is(err, gormlock.ErrStale) == forgotten {
				t.Error(err)
			}
			j := &judged{TB: t}
			j.run(func() { gormlocktest.AssertInstalled(j, db) })
			if failed := len(j.errors) > 0; failed != forgotten {
				t.Errorf("%q", j.errors)
			}
			pool, err := db.DB()
			if err != nil {
				t.Fatal(err)
			}
			_ = pool.Close()
		})
	}
}

// TestAssertInstalled: it finds the db on which gormlock was forgotten, and names the cure.
func TestAssertInstalled(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t)
	j := &judged{TB: t}
	j.run(func() { gormlocktest.AssertInstalled(j, db) })
	j.says(t, "db.Use(gormlock.New())")
	if err := db.Use(gormlock.New()); err != nil {
		t.Fatal(err)
	}
	gormlocktest.AssertInstalled(t, db)
	gormlocktest.AssertInstalled(t, db.Session(&gorm.Session{NewDB: true}))
	j = &judged{TB: t}
	j.run(func() { gormlocktest.AssertInstalled(j, nil) })
	j.says(t, "nil *gorm.DB")
}

// A renamed key stands for two locks: it is free if both are, and whoever holds either is seen.
func TestAssertFree_ofARenamedKey(t *testing.T) {
	t.Parallel()
	pool := pgtest.SQLDB(t)
	before, after := pgtest.Key(t, "old"), pgtest.Key(t, "new")
	renamed := lockkey.Renamed(after, before)
	gormlocktest.AssertFree(t, pool, renamed)
	for _, held := range []lockkey.Key{before, after, renamed} {
		rival := gormlocktest.Hold(t, pool, held)
		gormlocktest.AssertHeld(t, pool, renamed)
		j := &judged{TB: t}
		j.run(func() { gormlocktest.AssertFree(j, pool, renamed) })
		j.says(t, "held by backend")
		rival.Release()
		gormlocktest.WaitFree(t, pool, renamed)
	}
	j := &judged{TB: t}
	j.run(func() { gormlocktest.AssertFree(j, pool, lockkey.Of(1.5)) })
	j.says(t, "float64")
}
