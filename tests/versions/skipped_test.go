package versions_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

type skippedOwner struct {
	ID      int64
	Name    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type skippedPart struct {
	ID             int64
	SkippedOwnerID *int64
	SkippedOwner   *skippedOwner
	Version        int64 `gorm:"not null;default:1" gormlock:"version"`
}

// GORM saves what a row belongs to with DO NOTHING, and gives its struct the default of the version before.
func TestBelongsTo_thatWasSkippedIsNotRead(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	if err := db.AutoMigrate(&skippedOwner{}, &skippedPart{}); err != nil {
		t.Fatal(err)
	}
	for name, create := range map[string]func(part *skippedPart) error{
		"Create": func(part *skippedPart) error { return db.Create(part).Error },
		"Save":   func(part *skippedPart) error { return db.Save(part).Error },
		"in a tx": func(part *skippedPart) error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Create(part).Error })
		},
		"of a list": func(part *skippedPart) error { return db.Create([]*skippedPart{part}).Error },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept := skippedOwner{Name: "kept"}
			if err := db.Create(&kept).Error; err != nil {
				t.Fatal(err)
			}
			byKey := skippedOwner{ID: kept.ID}
			if err := create(&skippedPart{SkippedOwner: &byKey}); err != nil {
				t.Fatal(err)
			}
			if byKey.Version != 0 {
				t.Errorf("a struct that was not read is at version %d", byKey.Version)
			}
			if err := db.Save(&byKey).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
				t.Errorf("the next Save: %v", err)
			}
			if err := db.First(&kept, kept.ID).Error; err != nil || kept.Name != "kept" {
				t.Errorf("%+v, %v", kept, err)
			}
		})
	}
}
