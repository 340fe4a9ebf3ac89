package once_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// age makes all keys older.
func age(t *testing.T, db *gorm.DB, by time.Duration) {
	t.Helper()
	err := db.Exec("update gormlock_once set created_at = created_at - ? * interval '1 second', expires_at = expires_at - ? * interval '1 second'",
		by.Seconds(), by.Seconds()).Error
	if err != nil {
		t.Fatal(err)
	}
}

func store(t *testing.T, db *gorm.DB, key string, opts ...gormlock.OnceOption) {
	t.Helper()
	err := db.Transaction(func(tx *gorm.DB) error {
		_, err := gormlock.Once(tx, key, charge(key, "x"), opts...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSweepOnce(t *testing.T) {
	t.Parallel()
	db := open(t)
	store(t, db, "hour", gormlock.Expires(time.Hour))
	store(t, db, "plain")
	store(t, db, "week", gormlock.Expires(7*24*time.Hour))
	for _, step := range []struct {
		passes, olderThan time.Duration
		removed           int64
		left              []string
	}{
		{0, 24 * time.Hour, 0, []string{"hour", "plain", "week"}},
		{59 * time.Minute, 24 * time.Hour, 0, []string{"hour", "plain", "week"}},
		{2 * time.Minute, 24 * time.Hour, 1, []string{"plain", "week"}},
		{25 * time.Hour, 24 * time.Hour, 1, []string{"week"}},
		{6 * 24 * time.Hour, time.Hour, 1, nil},
	} {
		age(t, db, step.passes)
		removed, err := gormlock.SweepOnce(db, step.olderThan, 100)
		if left := keys(t, db); err != nil || removed != step.removed || !slices.Equal(left, step.left) {
			t.Errorf("%+v: removed %d, left %v, %v", step, removed, left, err)
		}
	}
	store(t, db, "plain") // free again
	if n := charges(t, db, "plain"); n != 2 {
		t.Errorf("charged %d times, want again after the sweep", n)
	}
}

// An expired key counts until it is removed.
func TestSweepOnce_expiredKeysCount(t *testing.T) {
	t.Parallel()
	db := open(t)
	store(t, db, "k", gormlock.Expires(time.Minute))
	age(t, db, time.Hour)
	store(t, db, "k")
	if n := charges(t, db, "k"); n != 1 {
		t.Errorf("charged %d times", n)
	}
}

func TestSweepOnce_refuses(t *testing.T) {
	t.Parallel()
	db := open(t)
	for name, c := range map[string]struct {
		db        *gorm.DB
		olderThan time.Duration
		limit     int
		want      error
	}{
		"no age":      {db, 0, 1, gormlock.ErrOption},
		"no limit":    {db, time.Hour, 0, gormlock.ErrOption},
		"no plugin":   {pgtest.Open(t), time.Hour, 1, gormlock.ErrNotInstalled},
		"no database": {nil, time.Hour, 1, gorm.ErrInvalidDB},
	} {
		if _, err := gormlock.SweepOnce(c.db, c.olderThan, c.limit); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Sweeps share the work, and callers whose key is removed under their hands run anew rather than fail.
func TestSweepOnce_besideCallers(t *testing.T) {
	t.Parallel()
	db := open(t)
	err := db.Exec("insert into gormlock_once (key, result, created_at) select 'old/'||n, '\"x\"', now() - interval '1 day' from generate_series(1, 2000) n").Error
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var removed atomic.Int64
	for range 3 {
		all.Go(func() {
			for empty := 0; empty < 3; {
				n, err := gormlock.SweepOnce(db, time.Hour, 50)
				if n > 50 || err != nil {
					t.Errorf("removed %d, %v", n, err)
					return
				}
				if removed.Add(n); n == 0 {
					empty++
				}
			}
		})
	}
	for i := range 4 {
		all.Go(func() {
			for n := 1 + i; n <= 2000; n += 40 {
				err := db.Transaction(func(tx *gorm.DB) error {
					_, err := gormlock.Once(tx, fmt.Sprint("old/", n), func(*gorm.DB) (string, error) { return "y", nil })
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if removed.Load() < 2000 {
		t.Errorf("%d keys are removed", removed.Load())
	}
}

// Programs that start together create the table together, and nothing is asked for when it is there.
func TestMigrateOnce(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := gormlock.MigrateOnce(db); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for range 2 { // by hand, too
		if err := db.Exec(gormlock.OnceSchema).Error; err != nil {
			t.Error(err)
		}
	}
	store(t, onCharges(t, db), "k")
	var plan []string
	err := db.Transaction(func(tx *gorm.DB) error {
		tx.Exec("set local enable_seqscan = off")
		return tx.Raw("explain select key from gormlock_once where expires_at < now() or (expires_at is null and created_at < now() - interval '1 day')").Scan(&plan).Error
	})
	if text := strings.Join(plan, "\n"); err != nil || !strings.Contains(text, "gormlock_once_created_at") || !strings.Contains(text, "gormlock_once_expires_at") {
		t.Errorf("the sweep finds its keys so: %v\n%s", err, text)
	}
}

func onCharges(t *testing.T, db *gorm.DB) *gorm.DB {
	t.Helper()
	if err := db.AutoMigrate(&Charge{}); err != nil {
		t.Fatal(err)
	}
	return db
}
