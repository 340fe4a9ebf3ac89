package transactions_test

import (
	"errors"
	"fmt"
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
