package belongs_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// emptiedKeeper is a keeper whose Up a Delete that was rolled back has emptied.
func emptiedKeeper(t *testing.T, db *gorm.DB) *keeper {
	t.Helper()
	stand.MustDo(t, db.Exec("TRUNCATE keepers, kepts"))
	stand.MustDo(t, db.Create(&keeper{ID: 1, Name: "k", Up: &kept{ID: 1, Name: "up"}}))
	var k keeper
	stand.MustDo(t, db.Preload("Up").First(&k, 1))
	if err := db.Transaction(func(tx *gorm.DB) error {
		return errors.Join(tx.Model(&k).Association("Up").Delete(k.Up), errKeep)
	}); undoneBy(err) != nil {
		t.Fatal(err)
	}
	return &k
}

func keepers(t *testing.T) *gorm.DB {
	t.Helper()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
	db.DisableForeignKeyConstraintWhenMigrating = true
	stand.Must(t, db.AutoMigrate(&kept{}, &keptByValue{}, &keptPicture{}, &keptOfMany{}, &keeper{}))
	return db
}

// A struct that was emptied is refused whatever its table is called, and as the values of an update.
func TestEmptied_byOtherNames(t *testing.T) {
	t.Parallel()
	db := keepers(t)
	stand.MustDo(t, db.Exec("CREATE VIEW shown_keepers AS SELECT * FROM keepers"))
	for name, write := range map[string]func(k *keeper) error{
		"an alias": func(k *keeper) error { return db.Table("keepers AS k").Save(k).Error },
		"quotes":   func(k *keeper) error { return db.Table(`"keepers"`).Save(k).Error },
		"a view":   func(k *keeper) error { return db.Table("shown_keepers").Save(k).Error },
		"values": func(k *keeper) error {
			return db.Model(&keeper{}).Where("id = 1").Select("up_id", "version").Updates(k).Error
		},
		"values that cannot be set": func(k *keeper) error {
			return db.Model(&keeper{}).Where("id = 1").Select("up_id", "version").Updates(*k).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := emptiedKeeper(t, db)
			if err := write(k); !errors.Is(err, gormlock.ErrVersionMissing) {
				t.Errorf("not refused: %v", err)
			}
			if !keeperLinked(t, db, keepings[0].state) {
				t.Error("the row has lost what it belongs to")
			}
		})
	}
}

// Another struct of the row, which was read since, may lose what it belongs to, and an update may leave out the foreign key.
func TestEmptied_otherStructs(t *testing.T) {
	t.Parallel()
	db := keepers(t)
	for name, write := range map[string]func(k *keeper) error{
		"Omit, Save":  func(k *keeper) error { return db.Omit(clause.Associations).Save(k).Error },
		"Omit Up":     func(k *keeper) error { return db.Omit("Up").Save(k).Error },
		"Select":      func(k *keeper) error { return db.Select("up_id").Updates(k).Error },
		"Model":       func(k *keeper) error { return db.Model(k).Select("UpID").Updates(k).Error },
		"nil, Save":   func(k *keeper) error { k.Up = nil; return db.Save(k).Error },
		"nil, Select": func(k *keeper) error { k.Up = nil; return db.Select("up_id").Updates(k).Error },
	} {
		t.Run(name, func(t *testing.T) {
			emptiedKeeper(t, db)
			var k keeper
			stand.MustDo(t, db.Preload("Up").First(&k, 1))
			k.UpID = nil
			stand.Must(t, write(&k))
			if keeperLinked(t, db, keepings[0].state) {
				t.Error("the row still has what it was to lose")
			}
		})
	}
	k := emptiedKeeper(t, db)
	stand.MustDo(t, db.Model(&keeper{}).Where("id = 1").Select("name").Updates(keeper{ID: k.ID, Name: "new", Up: k.Up}))
}
