package rollbacks_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	pageByCount struct {
		Path      string `gorm:"primaryKey"`
		Text      string
		UpdatedAt time.Time
		Version   int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	pageByUpdate struct {
		Path      string `gorm:"primaryKey"`
		Text      string
		UpdatedAt time.Time `gorm:"not null" gormlock:"version"`
	}
	pageByTime struct {
		Path    string `gorm:"primaryKey"`
		Text    string
		Version time.Time `gorm:"not null;autoUpdateTime" gormlock:"version"`
	}
	pageByPointer struct {
		Path    string `gorm:"primaryKey"`
		Text    string
		Version *time.Time `gorm:"not null;autoUpdateTime" gormlock:"version"`
	}
	pageByBoth struct {
		Path    string `gorm:"primaryKey"`
		Text    string
		Version time.Time `gorm:"not null;autoCreateTime;autoUpdateTime" gormlock:"version"`
	}
	pageByHook struct {
		Path    string `gorm:"primaryKey"`
		Text    string
		Version time.Time `gorm:"not null;autoUpdateTime" gormlock:"version"`
	}
)

func (p *pageByHook) BeforeSave(*gorm.DB) error {
	p.Text += "!"
	return nil
}

// A Save that inserts its struct gives it a version, and a rollback takes it: also if GORM makes the version a part of the update that
// found no row. The struct is as new as before, and can be saved again.
func TestRollback_ofASaveThatInserts(t *testing.T) {
	t.Parallel()
	for _, page := range []any{
		&pageByCount{Path: "a"}, &pageByUpdate{Path: "a"}, &pageByTime{Path: "a"}, &pageByPointer{Path: "a"}, &pageByBoth{Path: "a"}, &pageByHook{Path: "a"},
	} {
		t.Run(reflect.TypeOf(page).Elem().Name(), func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{page})
			undone := errors.New("undone")
			err := db.Transaction(func(tx *gorm.DB) error {
				stand.Must(t, tx.Save(page).Error)
				stand.Must(t, tx.Save(page).Error)
				return undone
			})
			if !errors.Is(err, undone) {
				t.Fatal(err)
			}
			version := reflect.ValueOf(page).Elem().FieldByName("Version")
			if !version.IsValid() {
				version = reflect.ValueOf(page).Elem().FieldByName("UpdatedAt")
			}
			if !version.IsZero() {
				t.Errorf("the version is %v", version)
			}
			tries := 0
			stand.Must(t, gormlock.Transaction(db, func(tx *gorm.DB) error {
				tries++
				if err := tx.Save(page).Error; err != nil || tries > 2 {
					return err
				}
				return gormlock.ErrStale
			}, gormlock.Attempts(3)))
			stand.Equal(t, "tries", tries, 3)
			stand.Must(t, db.Save(page).Error)
		})
	}
}
