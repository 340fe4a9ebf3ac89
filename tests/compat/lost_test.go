package compat_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"
	"gorm.io/plugin/optimisticlock"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

const rivals, writesOfEach = 16, 50

type officialCounter struct {
	ID, N   int64
	Version optimisticlock.Version
}

type taggedCounter struct {
	ID, N   int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// The figure on the first screen of the README: 16 goroutines read a row, add one and Save it, 800 times in all. With GORM's
// optimisticlock plugin every Save succeeds and most are lost. With the tag each write is stored or refused.
func TestLostUpdates_besideTheOfficialPlugin(t *testing.T) {
	t.Parallel()
	t.Run("optimisticlock", func(t *testing.T) {
		t.Parallel()
		db := pgtest.Open(t, pgtest.Schema(), pgtest.MaxConns(rivals))
		check(t, db.AutoMigrate(&officialCounter{}), db.Create(&officialCounter{ID: 1}).Error)
		stored, refused := race(t, addsOne(db, func(c *officialCounter) { c.N++ }))
		var row officialCounter
		check(t, db.First(&row, 1).Error)
		t.Logf("%d of %d writes are lost, %d errors", stored-row.N, rivals*writesOfEach, refused)
		if stored != rivals*writesOfEach || row.N >= stored {
			t.Errorf("%d of %d writes succeeded and the counter is %d: the README says otherwise", stored, rivals*writesOfEach, row.N)
		}
	})
	t.Run("gormlock", func(t *testing.T) {
		t.Parallel()
		db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()), pgtest.MaxConns(rivals))
		check(t, db.AutoMigrate(&taggedCounter{}), db.Create(&taggedCounter{ID: 1}).Error)
		stored, refused := race(t, addsOne(db, func(c *taggedCounter) { c.N++ }))
		var row taggedCounter
		check(t, db.First(&row, 1).Error)
		t.Logf("%d writes are stored, %d are refused", stored, refused)
		if row.N != stored || stored+refused != rivals*writesOfEach || refused == 0 {
			t.Errorf("%d writes succeeded, %d were refused, and the counter is %d", stored, refused, row.N)
		}
	})
}

// addsOne reads the counter, adds one and saves it.
func addsOne[T any](db *gorm.DB, add func(c *T)) func() error {
	return func() error {
		var c T
		if err := db.First(&c, 1).Error; err != nil {
			return err
		}
		add(&c)
		return db.Save(&c).Error
	}
}

// race lets all rivals write at once, and counts what succeeded and what was stale.
func race(t *testing.T, write func() error) (stored, refused int64) {
	t.Helper()
	var all sync.WaitGroup
	var done, stale atomic.Int64
	for range rivals {
		all.Go(func() {
			for range writesOfEach {
				switch err := write(); {
				case err == nil:
					done.Add(1)
				case errors.Is(err, gormlock.ErrStale):
					stale.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	return done.Load(), stale.Load()
}

func check(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
