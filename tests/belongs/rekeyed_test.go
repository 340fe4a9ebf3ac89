package belongs_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	bundle struct {
		ID      int64
		Items   []item `gorm:"foreignKey:BundleID"`
		Cover   *cover `gorm:"foreignKey:BundleID"`
		Version int64  `gorm:"not null;default:1" gormlock:"version"`
	}
	item struct {
		BundleID int64 `gorm:"primaryKey;autoIncrement:false"`
		No       int64 `gorm:"primaryKey;autoIncrement:false"`
		Bundle   *bundle
		Text     string
		Version  int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	cover struct {
		BundleID int64 `gorm:"primaryKey;autoIncrement:false"`
		Text     string
		Version  int64 `gorm:"not null;default:1" gormlock:"version"`
	}
)

// If a foreign key is a part of the key, a struct that gets another parent would be another row. That is written by nobody's wish.
func TestKey_ofAnotherParent(t *testing.T) {
	t.Parallel()
	full := func(db *gorm.DB) *gorm.DB { return db.Session(&gorm.Session{FullSaveAssociations: true}) }
	two := &bundle{ID: 2, Version: 1}
	for name, write := range map[string]func(db *gorm.DB, i *item) error{
		"Save":            func(db *gorm.DB, i *item) error { i.Bundle = two; return db.Save(i).Error },
		"Save of a slice": func(db *gorm.DB, i *item) error { i.Bundle = two; return db.Save(&[]*item{i}).Error },
		"Update":          func(db *gorm.DB, i *item) error { i.Bundle = two; return db.Model(i).Update("text", "mine").Error },
		"Updates":         func(db *gorm.DB, i *item) error { i.Bundle = two; return db.Updates(i).Error },
		"ExpectVersion": func(db *gorm.DB, i *item) error {
			i.Bundle = two
			return db.Clauses(gormlock.ExpectVersion(1)).Save(i).Error
		},
		"children": func(db *gorm.DB, i *item) error { return db.Save(&bundle{ID: 2, Version: 1, Items: []item{*i}}).Error },
		"children, full": func(db *gorm.DB, i *item) error {
			return full(db).Save(&bundle{ID: 2, Version: 1, Items: []item{*i}}).Error
		},
		"Append": func(db *gorm.DB, i *item) error {
			return db.Model(&bundle{ID: 2, Version: 1}).Association("Items").Append(i)
		},
		"a child, full": func(db *gorm.DB, _ *item) error {
			c := stand.Row[cover](t, db, 1)
			c.Text = "mine"
			return full(db).Save(&bundle{ID: 2, Version: 1, Cover: &c}).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stand.OnBoth(t, []any{&bundle{}, &item{}, &cover{}}, func(t *testing.T, db *gorm.DB) {
				for id := range int64(2) {
					stand.Must(t, db.Create(&bundle{ID: id + 1, Items: []item{{No: 1, Text: "old"}}, Cover: &cover{Text: "old"}}).Error)
				}
				var i item
				stand.Must(t, db.First(&i, "bundle_id = 1").Error)
				i.Text = "mine"
				if err := write(db, &i); err == nil {
					t.Error("no error")
				}
				stand.Equal(t, "items", db.Find(&[]item{}, "text = 'old'").RowsAffected, 2)
				stand.Equal(t, "covers", db.Find(&[]cover{}, "text = 'old'").RowsAffected, 2)
			})
		})
	}
	t.Run("without another parent", func(t *testing.T) {
		t.Parallel()
		stand.OnBoth(t, []any{&bundle{}, &item{}, &cover{}}, func(t *testing.T, db *gorm.DB) {
			one := bundle{ID: 1, Items: []item{{No: 1}}, Cover: &cover{}}
			stand.Must(t, db.Create(&one).Error)
			one.Items = append(one.Items, item{No: 2})
			stand.Must(t, full(db).Save(&one).Error)
			stand.Must(t, db.Save(&one).Error)
			i := item{No: 3, Bundle: &bundle{ID: 1, Version: one.Version}}
			stand.Must(t, db.Create(&i).Error)
			stand.Must(t, db.Save(&i).Error)
			stand.Equal(t, "items", db.Find(&[]item{}, "bundle_id = 1").RowsAffected, 3)
		})
	})
}

type sealed struct {
	BundleID int64 `gorm:"primaryKey;autoIncrement:false"`
	No       int64 `gorm:"primaryKey;autoIncrement:false"`
	Bundle   *bundle
	Text     string
	Fence    int64 `gorm:"not null;default:0" gormlock:"fence,key=sealed"`
}

// The same holds of an upsert, by whatever it is guarded.
func TestKey_ofAnotherParentInAnUpsert(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&bundle{}, &item{}, &cover{}, &sealed{}})
	db = stand.With(db, stand.Issue(t, db, "sealed", 1))
	upsert := func() *gorm.DB { return db.Clauses(clause.OnConflict{UpdateAll: true}) }
	for id := range int64(2) {
		stand.Must(t, db.Create(&bundle{ID: id + 1, Items: []item{{No: 1, Text: "old"}}}).Error)
		stand.Must(t, db.Create(&sealed{BundleID: id + 1, No: 1, Text: "old"}).Error)
	}
	two := stand.Row[bundle](t, db, 2)
	for name, write := range map[string]func() error{
		"of a version":                func() error { return upsert().Create(&item{BundleID: 1, No: 1, Bundle: &two, Version: 1}).Error },
		"of a version, new":           func() error { return upsert().Create(&item{BundleID: 1, No: 1, Bundle: &two}).Error },
		"of a fence":                  func() error { return upsert().Create(&sealed{BundleID: 1, No: 1, Bundle: &two}).Error },
		"Save of a slice, of a fence": func() error { return db.Save(&[]sealed{{BundleID: 1, No: 1, Bundle: &two}}).Error },
	} {
		if err := write(); err == nil || stand.FromServer(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	stand.Equal(t, "items", db.Find(&[]item{}, "text = 'old'").RowsAffected, 2)
	stand.Equal(t, "sealed rows", db.Find(&[]sealed{}, "text = 'old'").RowsAffected, 2)
}
