package rollbacks_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type commitOwner struct {
	ID      int64
	Name    string
	Kids    []commitKid `gorm:"foreignKey:OwnerID"`
	Card    commitCard  `gorm:"foreignKey:OwnerID"`
	Version int64       `gorm:"not null;default:1" gormlock:"version"`
}

type commitKid struct {
	ID, OwnerID int64
	Text        string
	Version     int64 `gorm:"not null;default:1" gormlock:"version"`
}

type commitCard struct {
	ID, OwnerID int64
	Text        string
	Version     int64 `gorm:"not null;default:1" gormlock:"version"`
}

// commitPart holds its owner by value, so Append gives it a copy.
type commitPart struct {
	ID, OwnerID int64
	Owner       commitOwner
	Version     int64 `gorm:"not null;default:1" gormlock:"version"`
}

// committedAppends end a transaction in which an association was saved, and say how many kids it added.
var committedAppends = map[string]struct {
	adds int
	do   func(tx *gorm.DB, o *commitOwner) error
}{
	"append": {1, func(tx *gorm.DB, o *commitOwner) error {
		return tx.Model(o).Association("Kids").Append(&commitKid{Text: "new"})
	}},
	"append twice": {2, func(tx *gorm.DB, o *commitOwner) error {
		return errors.Join(tx.Model(o).Association("Kids").Append(&commitKid{Text: "new"}), tx.Model(o).Association("Kids").Append(&commitKid{Text: "newer"}))
	}},
	"append what it holds": {0, func(tx *gorm.DB, o *commitOwner) error {
		return tx.Model(o).Association("Kids").Replace([]commitKid{o.Kids[0], o.Kids[1]})
	}},
	"append behind a write": {1, func(tx *gorm.DB, o *commitOwner) error {
		return errors.Join(tx.Create(&commitOwner{}).Error, tx.Model(o).Association("Kids").Append(&commitKid{Text: "new"}), tx.Save(&o.Kids[0]).Error)
	}},
	"append and save": {1, func(tx *gorm.DB, o *commitOwner) error {
		return errors.Join(tx.Model(o).Association("Kids").Append(&commitKid{Text: "new"}), tx.Save(o).Error)
	}},
	"append behind a savepoint that is rolled back": {1, func(tx *gorm.DB, o *commitOwner) error {
		was := o.Kids
		_ = tx.Transaction(func(tx *gorm.DB) error {
			return errors.Join(tx.Model(o).Association("Kids").Append(&commitKid{Text: "gone"}), errUndo)
		})
		o.Kids = was
		return tx.Model(o).Association("Kids").Append(&commitKid{Text: "new"})
	}},
	"append in a savepoint": {1, func(tx *gorm.DB, o *commitOwner) error {
		return tx.Transaction(func(tx *gorm.DB) error { return tx.Model(o).Association("Kids").Append(&commitKid{Text: "new"}) })
	}},
	"replace a card": {0, func(tx *gorm.DB, o *commitOwner) error {
		return tx.Model(o).Association("Card").Replace(&commitCard{Text: "new"})
	}},
}

// What Association.Append and Replace stored counts as read once its transaction is committed: a child that a rival has deleted
// then is not stored again by a save of its parent.
func TestCommit_ofAnAppend(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&commitOwner{}, &commitKid{}, &commitCard{}})
	for name, test := range committedAppends {
		for victim := -1; victim < 2+test.adds; victim++ {
			t.Run(fmt.Sprint(name, victim), func(t *testing.T) {
				o := commitOwner{Kids: []commitKid{{Text: "a"}, {Text: "b"}}, Card: commitCard{Text: "c"}}
				stand.MustDo(t, db.Create(&o))
				stand.MustDo(t, db.Preload("Kids").Preload("Card").First(&o, o.ID))
				stand.Must(t, db.Transaction(func(tx *gorm.DB) error { return test.do(tx, &o) }))

				stand.Equal(t, "kids", len(o.Kids), 2+test.adds)
				for _, kid := range o.Kids {
					stand.Equal(t, "kid", kid, stand.Row[commitKid](t, db, kid.ID))
				}
				stand.Equal(t, "card", o.Card, stand.Row[commitCard](t, db, o.Card.ID))

				var lost int64
				if victim < 0 {
					lost = o.Card.ID
					stand.MustDo(t, db.Exec("DELETE FROM commit_cards WHERE id = ?", lost))
				} else {
					lost = o.Kids[victim].ID
					stand.MustDo(t, db.Exec("DELETE FROM commit_kids WHERE id = ?", lost))
				}
				o.Name = "saved"
				if err := db.Save(&o).Error; !errors.Is(err, gormlock.ErrStale) {
					t.Errorf("saved without %d: %v", lost, err)
				}
				var kids, cards int64
				stand.MustDo(t, db.Model(&commitKid{}).Where("owner_id = ?", o.ID).Count(&kids))
				stand.MustDo(t, db.Model(&commitCard{}).Where("owner_id = ?", o.ID).Count(&cards))
				if victim >= 0 && kids != int64(1+test.adds) || victim < 0 && cards != 0 {
					t.Errorf("%d kids and %d cards", kids, cards)
				}
			})
		}
	}
}

// So does the owner that a part holds by value.
func TestCommit_ofAnAppendToABelongsTo(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&commitOwner{}, &commitKid{}, &commitCard{}, &commitPart{}})
	part, other := commitPart{Owner: commitOwner{Name: "a"}}, commitOwner{Name: "b"}
	stand.MustDo(t, db.Create(&part))
	stand.MustDo(t, db.Create(&other))
	for _, owner := range []*commitOwner{{Name: "new"}, &other} {
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error { return tx.Model(&part).Association("Owner").Append(owner) }))
		if got, want := part.Owner, stand.Row[commitOwner](t, db, owner.ID); got.ID != want.ID || got.Version != want.Version {
			t.Errorf("%+v, its row %+v", got, want)
		}
	}
}

// rolledBackAppends end a transaction in which an association was saved, without a commit.
var rolledBackAppends = map[string]func(tx *gorm.DB, o *commitOwner) error{
	"append": func(tx *gorm.DB, o *commitOwner) error {
		return tx.Model(o).Association("Kids").Append(&commitKid{Text: "new"})
	},
	"append twice": func(tx *gorm.DB, o *commitOwner) error {
		return errors.Join(tx.Model(o).Association("Kids").Append(&commitKid{Text: "new"}), tx.Model(o).Association("Kids").Append(&commitKid{Text: "newer"}))
	},
	"append in a savepoint": func(tx *gorm.DB, o *commitOwner) error {
		_ = tx.Transaction(func(tx *gorm.DB) error {
			return errors.Join(tx.Model(o).Association("Kids").Append(&commitKid{Text: "new"}), errUndo)
		})
		return nil
	},
	"append behind a save": func(tx *gorm.DB, o *commitOwner) error {
		o.Kids[0].Text, o.Kids[1].Text = "changed", "changed"
		return errors.Join(tx.Save(&o.Kids).Error, tx.Model(o).Association("Kids").Append(&commitKid{Text: "new"}))
	},
	"append behind a read": func(tx *gorm.DB, o *commitOwner) error {
		return errors.Join(tx.Exec("UPDATE commit_kids SET text = 'raw', version = version + 1").Error, tx.Preload("Kids").First(o).Error,
			tx.Model(o).Association("Kids").Append(&commitKid{Text: "new"}))
	},
	"append behind a read of the kids": func(tx *gorm.DB, o *commitOwner) error {
		var kids []commitKid
		err := errors.Join(tx.Exec("UPDATE commit_kids SET version = version + 1").Error, tx.Order("id").Find(&kids, "owner_id = ?", o.ID).Error)
		o.Kids = kids
		return errors.Join(err, tx.Model(o).Association("Kids").Append(&commitKid{Text: "new"}))
	},
}

// After a rollback of Association.Append no child holds a version that its row has not, and one that was read before the transaction, and
// that a rival deletes, is not stored again by a save of its parent.
func TestRollback_ofAnAppendLeavesTheOthersRead(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&commitOwner{}, &commitKid{}, &commitCard{}})
	for name, do := range rolledBackAppends {
		for _, rival := range []string{"delete", "update"} {
			t.Run(name+", "+rival, func(t *testing.T) {
				o := commitOwner{Kids: []commitKid{{Text: "a"}, {Text: "b"}}}
				stand.MustDo(t, db.Create(&o))
				stand.MustDo(t, db.Preload("Kids").First(&o, o.ID))
				_ = db.Transaction(func(tx *gorm.DB) error { return errors.Join(do(tx, &o), errUndo) })
				kept := !strings.HasPrefix(name, "append behind a read")
				if kept {
					stand.Equal(t, "version", o.Kids[0].Version, 1)
				}
				id := o.Kids[0].ID
				if rival == "update" {
					stand.MustDo(t, db.Exec("UPDATE commit_kids SET text = 'rival', version = 2 WHERE id = ?", id))
					if err := db.Save(&o.Kids[0]).Error; !errors.Is(err, gormlock.ErrStale) && (kept || !errors.Is(err, gormlock.ErrVersionMissing)) {
						t.Errorf("%+v was saved: %v", o.Kids[0], err)
					}
					return
				}
				stand.MustDo(t, db.Exec("DELETE FROM commit_kids WHERE id = ?", id))
				o.Name = "saved"
				if err := db.Save(&o).Error; err == nil && kept {
					t.Errorf("%+v was stored again", o.Kids[0])
				}
				if err := db.Model(&o).Association("Kids").Append(&commitKid{Text: "other"}); err == nil && kept {
					t.Errorf("%+v was stored again by an Append", o.Kids[0])
				}
			})
		}
	}
}

type metaOwner struct {
	ID      int64
	Kids    []metaKid `gorm:"foreignKey:OwnerID"`
	Version int64     `gorm:"not null;default:1" gormlock:"version"`
}

type metaKid struct {
	ID, OwnerID int64
	*KidMeta
}

// KidMeta is embedded by a pointer.
type KidMeta struct {
	Text    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// So do children whose version is in an embedded struct behind a pointer, which copies of them share.
func TestCommit_ofAnAppendBesideEmbeddedPointers(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&metaOwner{}, &metaKid{}})
	for _, end := range []error{nil, errUndo} {
		o := metaOwner{Kids: []metaKid{{KidMeta: &KidMeta{Text: "a"}}, {KidMeta: &KidMeta{Text: "b"}}}}
		stand.MustDo(t, db.Create(&o))
		stand.MustDo(t, db.Preload("Kids").First(&o, o.ID))
		_ = db.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, tx.Model(&o).Association("Kids").Append(&metaKid{KidMeta: &KidMeta{Text: "new"}}))
			return end
		})
		for _, kid := range o.Kids[:2] {
			stand.Equal(t, "kid", kid.Version, 1)
		}
		if end == nil {
			stand.Equal(t, "new kid", o.Kids[2].Version, 1)
		}
	}
}
