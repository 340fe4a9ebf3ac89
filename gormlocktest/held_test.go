package gormlocktest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/gormlocktest"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
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
