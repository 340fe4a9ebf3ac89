package versions_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// picnic has children whose keys are made while it is saved: by a hook, or from what they belong to.
type picnic struct {
	ID      int64
	Title   string
	Goods   []good
	Label   *nametag `gorm:"polymorphic:Owner"`
	Shares  []share
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type good struct {
	ID       string
	PicnicID int64
	Sku      string
	Qty      int
	Seen     time.Time
	Version  int64 `gorm:"not null;default:1" gormlock:"version"`
}

func (g *good) BeforeCreate(*gorm.DB) error {
	if g.ID == "" {
		g.ID = fmt.Sprintf("%d/%s", g.PicnicID, g.Sku)
	}
	return nil
}

type nametag struct {
	ID        string
	OwnerID   int64
	OwnerType string
	Qty       int
	Version   int64 `gorm:"not null;default:1" gormlock:"version"`
}

func (l *nametag) BeforeSave(*gorm.DB) error {
	if l.ID == "" {
		l.ID = fmt.Sprint(l.OwnerType, l.OwnerID)
	}
	return nil
}

type sharer struct {
	ID      int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type share struct {
	SharerID int64 `gorm:"primaryKey;autoIncrement:false"`
	Sharer   *sharer
	PicnicID int64
	Qty      int
	Version  int64 `gorm:"not null;default:1" gormlock:"version"`
}

// waysToSaveGoods save a picnic with its children.
var waysToSaveGoods = map[string]func(db *gorm.DB, b *picnic) error{
	"save": func(db *gorm.DB, b *picnic) error { return db.Save(b).Error },
	"update": func(db *gorm.DB, b *picnic) error {
		return db.Model(b).Select("Title", "Goods", "Label").Updates(b).Error
	},
	"append": func(db *gorm.DB, b *picnic) error {
		goods, label := b.Goods, b.Label
		b.Goods, b.Label = nil, nil
		return errors.Join(db.Model(b).Association("Goods").Append(&goods), db.Model(b).Association("Label").Append(label))
	},
	"all of it": func(db *gorm.DB, b *picnic) error {
		return db.Session(&gorm.Session{FullSaveAssociations: true}).Save(b).Error
	},
}

// A child whose key is made while its parent is saved may stand for a row that is there. It was not read.
func TestChild_whoseKeyIsMade(t *testing.T) {
	t.Parallel()
	for name, save := range waysToSaveGoods {
		t.Run(name, func(t *testing.T) {
			db := stand.Versioned(t, []any{&sharer{}, &picnic{}, &good{}, &nametag{}, &share{}})
			by := sharer{}
			stand.MustDo(t, db.Create(&by))
			b := picnic{Goods: []good{{Sku: "a", Qty: 9}}, Label: &nametag{Qty: 9}, Shares: []share{{Sharer: &by, Qty: 9}}}
			if name == "update" || name == "append" { // which do not store what a child belongs to
				b.Shares = nil
			}
			stand.MustDo(t, db.Omit("Goods", "Label", "Shares").Create(&b))
			stand.Must(t, save(db, &b))
			b.Goods[0].Qty++ // what is new is read
			b.Label.Qty++
			stand.Must(t, errors.Join(db.Save(&b.Goods[0]).Error, db.Save(b.Label).Error))
			for i := range b.Shares {
				b.Shares[i].Qty++
				stand.MustDo(t, db.Omit("Sharer").Save(&b.Shares[i]))
			}
			stand.MustDo(t, db.Exec("UPDATE goods SET version = 1; UPDATE nametags SET version = 1; UPDATE shares SET version = 1"))

			var again picnic
			stand.MustDo(t, db.First(&again, b.ID))
			again.Goods, again.Label, again.Shares = []good{{Sku: "a", Qty: 5}}, &nametag{Qty: 5}, b.Shares
			for i := range again.Shares {
				again.Shares[i] = share{Sharer: &by, Qty: 5}
			}
			if err := save(db, &again); err != nil {
				if !errors.Is(err, gormlock.ErrVersionMissing) && !errors.Is(err, gormlock.ErrStale) {
					t.Fatal(err)
				}
				return
			}
			rows := map[string]any{"good": &again.Goods[0], "label": again.Label}
			for i := range again.Shares {
				rows["share"] = &again.Shares[i]
			}
			for what, row := range rows {
				if err := db.Omit("Sharer").Save(row).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
					t.Errorf("the %s was saved, though it was not read: %v", what, err)
				}
			}
		})
	}
}

// A new child with a key of a hook is read, if the server writes a column otherwise too. Another one that differs by less than a second is not.
func TestChild_thatDiffersALittle(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&sharer{}, &picnic{}, &good{}, &nametag{}, &share{}})
	at := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
	b := picnic{Goods: []good{{Sku: "a", Seen: at.Add(900*time.Millisecond + 123)}}}
	stand.MustDo(t, db.Save(&b))
	stand.MustDo(t, db.Exec("ALTER TABLE goods ALTER seen TYPE timestamptz(0)"))
	b.Goods = append(b.Goods, good{Sku: "b", Seen: at.Add(400 * time.Millisecond)})
	stand.MustDo(t, db.Save(&b))
	for i := range b.Goods {
		b.Goods[i].Qty++
		stand.MustDo(t, db.Save(&b.Goods[i]))
	}
	stand.MustDo(t, db.Exec("ALTER TABLE goods ALTER seen TYPE timestamptz"))
	stand.MustDo(t, db.Exec("UPDATE goods SET version = 1, qty = 0, seen = ?", at.Add(900*time.Millisecond)))
	for _, key := range []string{"", fmt.Sprintf("%d/a", b.ID)} {
		b.Goods = []good{{ID: key, Sku: "a", Seen: at.Add(100 * time.Millisecond)}}
		stand.MustDo(t, db.Save(&b))
		if err := db.Save(&b.Goods[0]).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
			t.Errorf("key %q: it was saved: %v", key, err)
		}
	}
}
