package roots_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	bundle struct {
		ID      int64
		Pieces  []piece `gorm:"foreignKey:BundleID"`
		Cover   *cover  `gorm:"foreignKey:BundleID"`
		Version int64   `gorm:"not null;default:1" gormlock:"version"`
	}
	piece struct {
		BundleID int64   `gorm:"primaryKey;autoIncrement:false"`
		No       int64   `gorm:"primaryKey;autoIncrement:false"`
		Bundle   *bundle `gormlock:"root"`
		Text     string
	}
	cover struct {
		BundleID int64   `gorm:"primaryKey;autoIncrement:false"`
		Bundle   *bundle `gormlock:"root"`
		Text     string
	}
)

// A part without a version whose key contains that of its root is not written as the part of another root: it would be another row.
func TestRoot_whoseKeyIsInThatOfThePart(t *testing.T) {
	t.Parallel()
	upsert := func(db *gorm.DB) *gorm.DB { return db.Clauses(clause.OnConflict{UpdateAll: true}) }
	full := func(db *gorm.DB) *gorm.DB { return db.Session(&gorm.Session{FullSaveAssociations: true}) }
	stand.OnEach(t, []any{&bundle{}, &piece{}, &cover{}}, func(t *testing.T, db *gorm.DB) {
		for name, write := range map[string]func(i *piece, c *cover, two *bundle) error{
			"Save":               func(i *piece, _ *cover, two *bundle) error { i.Bundle = two; return db.Save(i).Error },
			"Save of a new root": func(i *piece, _ *cover, _ *bundle) error { i.Bundle = &bundle{}; return db.Save(i).Error },
			"Save of a slice":    func(i *piece, _ *cover, two *bundle) error { i.Bundle = two; return db.Save(&[]*piece{i}).Error },
			"Save of the whole key": func(_ *piece, c *cover, two *bundle) error {
				c.Bundle = two
				return db.Save(c).Error
			},
			"Update": func(i *piece, _ *cover, two *bundle) error {
				i.Bundle = two
				return db.Model(i).Update("text", "mine").Error
			},
			"Updates": func(i *piece, _ *cover, two *bundle) error { i.Bundle = two; return db.Updates(i).Error },
			"upsert":  func(i *piece, _ *cover, two *bundle) error { i.Bundle = two; return upsert(db).Create(i).Error },
			"upsert of a slice": func(i *piece, _ *cover, two *bundle) error {
				i.Bundle = two
				return upsert(db).Create(&[]*piece{i}).Error
			},
			"Append to the part":  func(i *piece, _ *cover, two *bundle) error { return db.Model(i).Association("Bundle").Append(two) },
			"Replace at the part": func(_ *piece, c *cover, two *bundle) error { return db.Model(c).Association("Bundle").Replace(two) },
			"Append to the root":  func(i *piece, _ *cover, two *bundle) error { return db.Model(two).Association("Pieces").Append(i) },
			"Replace at the root": func(_ *piece, c *cover, two *bundle) error { return db.Model(two).Association("Cover").Replace(c) },
			"children":            func(i *piece, _ *cover, two *bundle) error { two.Pieces = []piece{*i}; return db.Save(two).Error },
			"children, whole":     func(i *piece, _ *cover, two *bundle) error { two.Pieces = []piece{*i}; return full(db).Save(two).Error },
			"a child, whole":      func(_ *piece, c *cover, two *bundle) error { two.Cover = c; return full(db).Save(two).Error },
		} {
			t.Run(name, func(t *testing.T) {
				all := db.Session(&gorm.Session{AllowGlobalUpdate: true})
				for _, model := range []any{&piece{}, &cover{}, &bundle{}} {
					stand.Must(t, all.Delete(model).Error)
				}
				for id := range int64(2) {
					stand.Must(t, db.Create(&bundle{ID: id + 1, Pieces: []piece{{No: 1, Text: "old"}}, Cover: &cover{Text: "old"}}).Error)
				}
				i, c := piece{}, cover{}
				stand.Must(t, db.Preload("Bundle").First(&i, "bundle_id = 1").Error)
				stand.Must(t, db.Preload("Bundle").First(&c, "bundle_id = 1").Error)
				two := stand.Row[bundle](t, db, 2)
				i.Text, c.Text = "mine", "mine"
				if err := write(&i, &c, &two); err == nil {
					t.Error("no error")
				} else if stand.FromServer(err) {
					t.Error(err)
				}
				stand.Equal(t, "the part's key", i.BundleID, 1)
				stand.Equal(t, "the other part's key", c.BundleID, 1)
				stand.Equal(t, "pieces", db.Find(&[]piece{}, "text = 'old'").RowsAffected, 2)
				stand.Equal(t, "covers", db.Find(&[]cover{}, "text = 'old'").RowsAffected, 2)
				stand.Equal(t, "bundles", db.Find(&[]bundle{}).RowsAffected, 2)
				stand.Equal(t, "the version of the other root", stand.Row[bundle](t, db, 2).Version, two.Version)
			})
		}
	})
}

// The same part is written as a part of its own root.
func TestRoot_whoseKeyIsInThatOfItsPart(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, []any{&bundle{}, &piece{}, &cover{}}, func(t *testing.T, db *gorm.DB) {
		one := bundle{Pieces: []piece{{No: 1}}, Cover: &cover{}}
		stand.Must(t, db.Create(&one).Error)
		one.Pieces = append(one.Pieces, piece{No: 2})
		stand.Must(t, db.Session(&gorm.Session{FullSaveAssociations: true}).Save(&one).Error)
		stand.Must(t, db.Save(&one).Error)
		stand.Must(t, db.Model(&one).Association("Pieces").Append(&piece{No: 3}, &one.Pieces[0]))
		one = stand.Row[bundle](t, db, one.ID)
		i := piece{No: 4, Bundle: &one}
		stand.Must(t, db.Create(&i).Error)
		stand.Must(t, db.Save(&i).Error)
		stand.Must(t, db.Save(&[]*piece{&i, {No: 5, Bundle: &one}}).Error)
		stand.Must(t, db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&piece{No: 6, Bundle: &one}).Error)
		stand.Must(t, db.Create(&piece{No: 1, Bundle: &bundle{}}).Error)
		stand.Equal(t, "pieces", db.Find(&[]piece{}, "bundle_id = ?", one.ID).RowsAffected, 6)
		stand.Equal(t, "all pieces", db.Find(&[]piece{}).RowsAffected, 7)
	})
}
