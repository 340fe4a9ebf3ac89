package versions_test

import (
	"database/sql"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	zeroed struct {
		ID      int64
		Name    string
		Version int64 `gorm:"not null;default:0" gormlock:"version,rails"`
	}
	zeroedPointer struct {
		ID      int64
		Name    string
		Version *int32 `gorm:"not null;default:0" gormlock:"version,initial=0"`
	}
	zeroedNull struct {
		ID      int64
		Name    string
		Version sql.NullInt32 `gorm:"not null;default:0" gormlock:"version,hibernate"`
	}
	onedPointer struct {
		ID      int64
		Name    string
		Version *int32 `gorm:"not null;default:1" gormlock:"version"`
	}
	zeroedPatch struct {
		Name    string
		Version *int64
	}
)

func (zeroedPointer) TableName() string { return "zeroeds" }

func (zeroedNull) TableName() string { return "zeroeds" }

func rowAt[T any](t *testing.T, db *gorm.DB, id int64) *T {
	t.Helper()
	row := stand.Row[T](t, db, id)
	return &row
}

// Where versions start at 0, a form of the model's own type names version 0 by a pointer to it, by a valid 0, by Select or by having its
// key. Then it is compared.
func TestFormOfTheModel_atVersionZero(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, []any{&zeroed{}}, func(t *testing.T, db *gorm.DB) {
		ctx, zero := t.Context(), int32(0)
		named := map[string]func(db *gorm.DB, id int64) error{
			"a pointer": func(db *gorm.DB, id int64) error {
				return db.Model(&zeroedPointer{}).Where("id = ?", id).Updates(zeroedPointer{Name: "form", Version: &zero}).Error
			},
			"a pointer, read": func(db *gorm.DB, id int64) error {
				return db.Model(rowAt[zeroedPointer](t, db, id)).Updates(&zeroedPointer{Name: "form", Version: &zero}).Error
			},
			"a pointer, gorm.G": func(db *gorm.DB, id int64) error {
				return stand.ErrorOf(gorm.G[zeroedPointer](db).Where("id = ?", id).Updates(ctx, zeroedPointer{Name: "form", Version: &zero}))
			},
			"a valid 0": func(db *gorm.DB, id int64) error {
				return db.Model(&zeroedNull{}).Where("id = ?", id).Updates(zeroedNull{Name: "form", Version: sql.NullInt32{Valid: true}}).Error
			},
			"a valid 0, UpdateColumns": func(db *gorm.DB, id int64) error {
				return db.Model(rowAt[zeroedNull](t, db, id)).UpdateColumns(zeroedNull{Name: "form", Version: sql.NullInt32{Valid: true}}).Error
			},
			"Select": func(db *gorm.DB, id int64) error {
				return db.Model(&zeroed{}).Where("id = ?", id).Select("Name", "Version").Updates(zeroed{Name: "form"}).Error
			},
			"Select, read": func(db *gorm.DB, id int64) error {
				return db.Model(rowAt[zeroed](t, db, id)).Select("name", "version").Updates(zeroed{Name: "form"}).Error
			},
			"Select, gorm.G": func(db *gorm.DB, id int64) error {
				return stand.ErrorOf(gorm.G[zeroed](db).Where("id = ?", id).Select("Name", "Version").Updates(ctx, zeroed{Name: "form"}))
			},
			"its key": func(db *gorm.DB, id int64) error {
				return db.Model(&zeroed{}).Where("id = ?", id).Updates(zeroed{ID: id, Name: "form"}).Error
			},
			"a form of another type": func(db *gorm.DB, id int64) error {
				return db.Model(&zeroedPointer{}).Where("id = ?", id).Updates(zeroedPatch{"form", new(int64)}).Error
			},
			"a map": func(db *gorm.DB, id int64) error {
				return db.Model(&zeroed{}).Where("id = ?", id).Updates(map[string]any{"name": "form", "version": 0}).Error
			},
		}
		for how, write := range named {
			row := stand.Made(t, db, zeroed{Name: "a"})
			stand.Must(t, write(db, row.ID))
			stand.Equal(t, how+", at 0", stand.Row[zeroed](t, db, row.ID), zeroed{row.ID, "form", 1})
			stand.Must(t, db.Model(&zeroed{}).Where("id = ?", row.ID).Update("name", "rival").Error)
			if stale := stand.MustBeStale(t, write(db, row.ID)); stale.Expected != int64(0) {
				t.Errorf("%s: expected %v", how, stale.Expected)
			}
			stand.Equal(t, how+", at 2", stand.Row[zeroed](t, db, row.ID), zeroed{row.ID, "rival", 2})
		}
	})
}

// What does not name it is not compared: a 0 by itself is what Go makes of the field.
func TestFormOfTheModel_thatNamesNoVersion(t *testing.T) {
	t.Parallel()
	db, row := stand.Stored(t, zeroed{Name: "a"})
	stand.Must(t, db.Model(&row).Update("name", "b").Error)
	all := db.Where("id = ?", row.ID).Session(&gorm.Session{})
	stand.Must(t, all.Model(&zeroed{}).Updates(zeroed{Name: "0"}).Error)
	stand.Must(t, all.Model(&zeroed{}).Select("Name").Updates(zeroed{Name: "another Select"}).Error)
	stand.Must(t, all.Model(&zeroed{}).Select("*").Omit("ID", "Version").Updates(zeroed{Name: "left out"}).Error)
	stand.Must(t, all.Model(&zeroed{}).Select("*").Omit("ID").Updates(zeroed{Name: "zeros are written"}).Error)
	stand.Must(t, db.Model(rowAt[zeroed](t, db, row.ID)).Select("*").Omit("ID").Updates(zeroed{Name: "into a struct that was read"}).Error)
	stand.Must(t, all.Model(&zeroedPointer{}).Updates(zeroedPointer{Name: "nil"}).Error)
	stand.Must(t, all.Model(&zeroedNull{}).Updates(zeroedNull{Name: "NULL"}).Error)
	stand.Equal(t, "row", stand.Row[zeroed](t, db, row.ID), zeroed{row.ID, "NULL", 8})
	stand.MustStale(t, db.Model(&row).Updates(zeroed{Name: "lost"}).Error) // the struct of Model is
}

// Where 0 is no version, a pointer to 0 names none that a row has: in a form of the model's own type as in any other.
func TestFormOfTheModel_pointsToNoVersion(t *testing.T) {
	t.Parallel()
	db, row := stand.Stored(t, onedPointer{Name: "a"})
	zero := int32(0)
	all := db.Model(&onedPointer{}).Where("id = ?", row.ID).Session(&gorm.Session{})
	stand.MustBeUnread(t, db.Model(&row).Updates(onedPointer{Name: "form", Version: &zero}).Error)
	stand.MustBeUnread(t, db.Model(&row).Updates(zeroedPatch{"form", new(int64)}).Error)
	if all.Updates(onedPointer{Name: "form", Version: &zero}).Error == nil || all.Updates(zeroedPatch{"form", new(int64)}).Error == nil {
		t.Error("not refused")
	}
	stand.Equal(t, "row", stand.Row[onedPointer](t, db, row.ID).Name, "a")
	stand.Must(t, all.Select("*").Omit("ID").Updates(onedPointer{Name: "none"}).Error)
}
