package belongs_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// TestUnscopedClear: GORM empties the foreign key, and makes a delete that fails. The error says what was done.
func TestUnscopedClear(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, all)
	c := settled(t, db)[0]
	err := db.Model(&c).Association("Home").Unscoped().Clear()
	if err == nil || strings.Contains(err.Error(), "nothing was executed") || !strings.Contains(err.Error(), "was set to NULL") {
		t.Error(err)
	}
	stand.Equal(t, "home", stored(t, db, 1).Home, 0)
}

type (
	boss struct {
		ID      int64
		BossID  *int64
		Boss    *boss
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	fencedBoss struct {
		ID     int64
		BossID *int64
		Boss   *fencedBoss
		Token  int64 `gorm:"not null;default:0" gormlock:"fence,key=boss"`
	}
)

// The delete has the conditions of the update before it, if the other row is one of the same table: the error is the same.
func TestUnscopedClear_ofItsOwnKind(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&boss{}, &fencedBoss{}}, func(t *testing.T, db *gorm.DB) {
		fenced := db.Clauses(gormlock.IgnoreFence()).Session(&gorm.Session{})
		for how, cleared := range map[string]func() (from any, err error){
			"one": func() (any, error) {
				b := stand.Made(t, db, boss{Boss: &boss{}})
				return &b, db.Model(&b).Association("Boss").Unscoped().Clear()
			},
			"many": func() (any, error) {
				list := []boss{stand.Made(t, db, boss{Boss: &boss{}}), stand.Made(t, db, boss{Boss: &boss{}})}
				return &list, db.Model(&list).Association("Boss").Unscoped().Clear()
			},
			"a fence": func() (any, error) {
				top := stand.Made(t, fenced, fencedBoss{})
				b := stand.Made(t, fenced, fencedBoss{BossID: &top.ID})
				return &b, fenced.Model(&b).Association("Boss").Unscoped().Clear()
			},
			"a connection": func() (from any, err error) {
				b := stand.Made(t, db, boss{Boss: &boss{}})
				_ = db.Connection(func(tx *gorm.DB) error {
					err = tx.Model(&b).Association("Boss").Unscoped().Clear()
					return nil
				})
				return &b, err
			},
		} {
			from, err := cleared()
			if err == nil || strings.Contains(err.Error(), "nothing was executed") || !strings.Contains(err.Error(), "was set to NULL") {
				t.Errorf("%s: %v", how, err)
			}
			var left int64
			stand.Must(t, db.Model(from).Where("boss_id IS NOT NULL").Count(&left).Error)
			stand.Equal(t, how, left, 0)
		}
		b := stand.Made(t, db, boss{Boss: &boss{}})
		stand.Must(t, db.Connection(func(tx *gorm.DB) error {
			stand.Must(t, tx.Model(&b).Association("Boss").Clear())
			if err := tx.Where("id > 0").Delete(&boss{}).Error; err == nil || !strings.Contains(err.Error(), "nothing was executed") {
				t.Error("a delete of its own:", err)
			}
			return nil
		}))
	})
}
