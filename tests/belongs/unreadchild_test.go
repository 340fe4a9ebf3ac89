package belongs_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type formOwner struct {
	ID      int64
	Title   string
	Kids    []formKid `gorm:"foreignKey:OwnerID"`
	One     *formOne  `gorm:"foreignKey:OwnerID"`
	Version int64     `gorm:"not null;default:1" gormlock:"version"`
}

type formKid struct {
	Code      string `gorm:"primaryKey"`
	OwnerID   int64
	Text      string
	Price     int64
	CreatedAt time.Time
	Version   int64 `gorm:"not null;default:1" gormlock:"version"`
}

type formOne struct {
	Code    string `gorm:"primaryKey"`
	OwnerID int64
	Text    string
	Price   int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// A child that was not read keeps no version of a row whose columns it does not have, though that is the version of new rows. One that was
// inserted has its version.
func TestChild_thatWasNotRead(t *testing.T) {
	t.Parallel()
	kid, one := formKid{Code: "there", Text: "form"}, formOne{Code: "there", Text: "form"}
	for name, write := range map[string]func(db *gorm.DB, o *formOwner) (child any, err error){
		"save, has many": func(db *gorm.DB, o *formOwner) (any, error) {
			o.Kids = []formKid{kid}
			err := db.Save(o).Error
			return &o.Kids[0], err
		},
		"updates, has many": func(db *gorm.DB, o *formOwner) (any, error) {
			o.Kids = []formKid{kid}
			err := db.Updates(o).Error
			return &o.Kids[0], err
		},
		"save, beside a new one": func(db *gorm.DB, o *formOwner) (any, error) {
			o.Kids = []formKid{{Code: "another"}, kid}
			err := db.Save(o).Error
			return &o.Kids[1], err
		},
		"save, has one": func(db *gorm.DB, o *formOwner) (any, error) {
			form := one
			o.One = &form
			err := db.Save(o).Error
			return o.One, err
		},
		"append": func(db *gorm.DB, o *formOwner) (any, error) {
			form := kid
			err := db.Model(o).Association("Kids").Append(&form)
			return &form, err
		},
	} {
		db := stand.Versioned(t, []any{&formOwner{}, &formKid{}, &formOne{}})
		o := formOwner{Kids: []formKid{{Code: "there", Text: "theirs", Price: 5}}, One: &formOne{Code: "there", Text: "theirs", Price: 5}}
		stand.MustDo(t, db.Create(&o))
		o = stand.Row[formOwner](t, db, o.ID)
		child, err := write(db, &o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := db.Save(child).Error; err == nil {
			t.Errorf("%s: it was saved over its row: %+v", name, child)
		}
	}
	db := stand.Versioned(t, []any{&formOwner{}, &formKid{}, &formOne{}})
	o := formOwner{Kids: []formKid{{Code: "new", Text: "x", Price: 7}, {Code: "newer"}}, One: &formOne{Code: "new"}}
	stand.MustDo(t, db.Create(&o))
	o.Kids = append(o.Kids, formKid{Code: "newest", CreatedAt: time.Now()})
	stand.MustDo(t, db.Save(&o))
	for i := range o.Kids {
		o.Kids[i].Price++
		if err := db.Save(&o.Kids[i]).Error; err != nil {
			t.Errorf("inserted %s: %v", o.Kids[i].Code, err)
		}
	}
	if err := db.Save(o.One).Error; err != nil {
		t.Errorf("inserted: %v", err)
	}
}
