package versions_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type seat struct {
	Row     int64 `gorm:"primaryKey;autoIncrement:false"`
	Number  int64 `gorm:"primaryKey;autoIncrement:false"`
	Guest   string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// V26: a composite key with a zero part is a key. Each way to write its row compares the version, and none makes a row
// again that is gone.
func TestV26_KeyWithAZeroPart(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&seat{}}, func(t *testing.T, db *gorm.DB) {
		for name, write := range map[string]func(s *seat) error{
			"Save":         func(s *seat) error { return db.Save(s).Error },
			"Save a slice": func(s *seat) error { return db.Save([]*seat{s}).Error },
			"Updates":      func(s *seat) error { return db.Model(s).Updates(map[string]any{"guest": s.Guest}).Error },
			"update slice": func(s *seat) error { return db.Model([]*seat{s}).Update("guest", s.Guest).Error },
			"upsert":       func(s *seat) error { return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(s).Error },
			"Select Save":  func(s *seat) error { return db.Select("Guest").Save(s).Error },
			"Expect Save": func(s *seat) error {
				return db.Clauses(gormlock.ExpectVersion(s.Version)).Save(s).Error
			},
			"Select Update": func(s *seat) error { return db.Model(s).Select("*").Updates(s).Error },
		} {
			stand.Must(t, db.Where("1=1").Delete(&seat{}).Error)
			stand.Must(t, db.Create(&seat{Row: 0, Number: 5, Guest: "a"}).Error)
			stand.Must(t, db.Create(&seat{Row: 1, Number: 5, Guest: "other"}).Error)
			fresh := seat{}
			stand.Must(t, db.First(&fresh, "row = 0").Error)
			stale := fresh
			fresh.Guest = "b"
			stand.Must(t, write(&fresh))
			now := seat{}
			stand.Must(t, db.First(&now, "row = 0").Error)
			stand.Equal(t, name, fresh, now)
			stand.Equal(t, name+": version", now.Version, 2)
			stale.Guest = "c"
			stand.MustStale(t, write(&stale))
			stand.Must(t, db.Where("row = 0").Delete(&seat{}).Error)
			stand.MustStale(t, write(&fresh))
			var n int64
			stand.Must(t, db.Model(&seat{}).Count(&n).Error)
			stand.Equal(t, name+": rows", n, 1)
			other := seat{}
			stand.Must(t, db.First(&other).Error)
			stand.Equal(t, name+": the other row", other, seat{Row: 1, Number: 5, Guest: "other", Version: 1})
		}
	})
}

// V26: Save of a struct without a version stores it where there is no row, and is refused where there is one.
func TestV26_UnreadKeyWithAZeroPart(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&seat{}}, func(t *testing.T, db *gorm.DB) {
		first := seat{Number: 7, Guest: "a"}
		stand.Must(t, db.Save(&first).Error)
		stand.Equal(t, "stored", first, seat{Number: 7, Guest: "a", Version: 1})
		unread := seat{Number: 7, Guest: "b"}
		stand.MustBeUnread(t, db.Save(&unread).Error)
		if err := db.Clauses(gormlock.ExpectVersion(0)).Save(&seat{Number: 8}).Error; err == nil {
			t.Error("ExpectVersion(0) stored a row")
		}
		now := seat{}
		stand.Must(t, db.First(&now).Error)
		stand.Equal(t, "row", now, first)
		sent := db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Save(&seat{Number: 7, Version: 1}) })
		if !strings.HasPrefix(sent, "UPDATE") {
			t.Error(sent)
		}
	})
}

// V26: what is asked of such a Save besides holds too: its lock, its scopes, its hooks' error.
func TestV26_LocksOfAKeyWithAZeroPart(t *testing.T) {
	t.Parallel()
	db, s := stand.Stored(t, seat{Number: 9, Guest: "a"})
	key := lockkey.Of("seat", t.Name())
	for name, save := range map[string]func(tx *gorm.DB) error{
		"scope":  func(tx *gorm.DB) error { return tx.Scopes(gormlock.WithXactLock(key, gormlock.Try())).Save(&s).Error },
		"clause": func(tx *gorm.DB) error { return tx.Clauses(gormlock.XactLock(key, gormlock.Try())).Save(&s).Error },
	} {
		stand.InTx(t, db, func(rival *gorm.DB) {
			stand.Must(t, gormlock.AcquireXactLock(rival, []lockkey.Key{key}))
			if err := save(db); !errors.Is(err, gormlock.ErrNotAcquired) {
				t.Errorf("%s: %v", name, err)
			}
		})
		stand.Must(t, save(db))
	}
	stand.Equal(t, "version", s.Version, 3)
	stand.Equal(t, "rows", db.Scopes(func(tx *gorm.DB) *gorm.DB { return tx.Where("guest = 'nobody'") }).Save(&s).Error != nil, true)
	if err := db.Clauses(gormlock.RowLock(gormlock.ForUpdate)).Save(&s).Error; err == nil {
		t.Error("a row lock on a Save is an error")
	}
}
