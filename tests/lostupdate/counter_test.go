package lostupdate

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

const writers, each = 16, 50

type counter struct {
	ID      int64
	N       int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// unguarded is the same row without the tag: the control.
type unguarded struct {
	ID      int64
	N       int64
	Version int64
}

func (unguarded) TableName() string { return "counters" }

// writes are the ways to write back what was read.
var writes = map[string]func(db *gorm.DB, c *counter) error{
	"Save": func(db *gorm.DB, c *counter) error {
		c.N++
		return db.Save(c).Error
	},
	"Update": func(db *gorm.DB, c *counter) error { return db.Model(c).Update("n", c.N+1).Error },
	"Updates with a map": func(db *gorm.DB, c *counter) error {
		return db.Model(c).Updates(map[string]any{"n": c.N + 1}).Error
	},
	"Updates with a struct": func(db *gorm.DB, c *counter) error { return db.Model(c).Updates(counter{N: c.N + 1}).Error },
	"UpdateColumn":          func(db *gorm.DB, c *counter) error { return db.Model(c).UpdateColumn("n", c.N+1).Error },
	"Save of a slice": func(db *gorm.DB, c *counter) error {
		c.N++
		return db.Save([]*counter{c}).Error
	},
	"Create on conflict": func(db *gorm.DB, c *counter) error {
		c.N++
		return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(c).Error
	},
	"Updates of G": func(db *gorm.DB, c *counter) error {
		_, err := gorm.G[counter](db).Updates(db.Statement.Context, counter{ID: c.ID, N: c.N + 1, Version: c.Version})
		return err
	},
}

// G5: of 800 reads each followed by a write, as many count as succeed. With the tag removed writes are lost, so the
// test can see a loss.
func TestG5_ReadModifyWrite(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.MaxConns(writers))
	must(t, db.AutoMigrate(&counter{}))
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			c := counter{}
			must(t, db.Create(&c).Error)
			stored, stale := race(t, func() error { return readAndWrite(db, c.ID, write) })
			must(t, db.First(&c, c.ID).Error)
			t.Logf("%d stored, %d stale", stored, stale)
			if c.N != stored || c.Version != stored+1 || stored+stale != writers*each {
				t.Errorf("the counter is %d at version %d after %d writes and %d conflicts", c.N, c.Version, stored, stale)
			}
			if stale == 0 {
				t.Error("no conflict: this test proves nothing")
			}
		})
	}
	t.Run("the control loses", func(t *testing.T) {
		c := unguarded{}
		must(t, db.Create(&c).Error)
		stored, _ := race(t, func() error {
			return readAndWrite(db, c.ID, func(db *gorm.DB, mine *unguarded) error {
				mine.N++
				return db.Save(mine).Error
			})
		})
		must(t, db.First(&c, c.ID).Error)
		t.Logf("%d stored, the counter is %d", stored, c.N)
		if c.N >= stored {
			t.Error("nothing was lost without versions: this test proves nothing")
		}
	})
}

// V10: with 20 attempts every one of the 800 gets through, whatever it writes with.
func TestV10_ReadModifyWriteWithRetry(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.MaxConns(writers))
	must(t, db.AutoMigrate(&counter{}))
	for _, name := range []string{"Save", "Updates with a struct", "Updates with a map", "Create on conflict"} {
		t.Run(name, func(t *testing.T) {
			c := counter{}
			must(t, db.Create(&c).Error)
			var retries atomic.Int64
			stored, _ := race(t, func() error {
				return gormlock.Transaction(db, func(tx *gorm.DB) error {
					return readAndWrite(tx, c.ID, writes[name])
				}, gormlock.Attempts(20), gormlock.OnRetry(func(int, error) { retries.Add(1) }))
			})
			must(t, db.First(&c, c.ID).Error)
			t.Logf("%d retries", retries.Load())
			if c.N != writers*each || stored != writers*each {
				t.Errorf("the counter is %d after %d writes, want %d", c.N, stored, writers*each)
			}
			if retries.Load() == 0 {
				t.Error("no conflict: this test proves nothing")
			}
		})
	}
}

// readAndWrite writes a row after reading it.
func readAndWrite[T any](db *gorm.DB, id int64, write func(db *gorm.DB, mine *T) error) error {
	var mine T
	if err := db.First(&mine, id).Error; err != nil {
		return err
	}
	return write(db, &mine)
}

// race lets all writers do the same at once, and counts what was stored and what was stale.
func race(t *testing.T, do func() error) (stored, stale int64) {
	t.Helper()
	var all sync.WaitGroup
	var done, late atomic.Int64
	start := make(chan struct{})
	for range writers {
		all.Go(func() {
			<-start
			for range each {
				switch err := do(); {
				case err == nil:
					done.Add(1)
				case errors.Is(err, gormlock.ErrStale):
					late.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	close(start)
	all.Wait()
	return done.Load(), late.Load()
}
