package transactions_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

type payer struct {
	ID      int64
	Name    string
	Version int64 `gormlock:"version"`
}

type bill struct {
	ID      int64
	Sum     int64
	Version int64 `gormlock:"version"`
	PayerID *int64
	Payer   *payer
}

// TestEmptiedByAssociation: Association(…).Delete of a belongs-to empties the struct that it is given. The next attempt has it
// again, and does not store an empty one.
func TestEmptiedByAssociation(t *testing.T) {
	t.Parallel()
	for name, stored := range map[string]bool{"a payer that was read": true, "a payer that is created with it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
			must(t, db.AutoMigrate(&payer{}, &bill{}))
			b := bill{ID: 1}
			must(t, db.Create(&b).Error)
			p := payer{Name: "Ada"}
			if stored {
				must(t, db.Create(&p).Error)
				b.PayerID = &p.ID
				must(t, db.Save(&b).Error)
			}
			b.Payer = &p
			was, attempts := p, 0
			must(t, gormlock.Transaction(db, func(tx *gorm.DB) error {
				if attempts++; attempts == 2 && *b.Payer != was {
					t.Errorf("in the second attempt it is %+v, it was %+v", *b.Payer, was)
				}
				b.Sum = 90
				must(t, tx.Save(&b).Error)
				must(t, tx.Model(&b).Association("Payer").Delete(&p))
				if attempts == 1 {
					return gormlock.ErrStale
				}
				return nil
			}, gormlock.Attempts(2)))
			var all []payer
			must(t, db.Find(&all).Error)
			if len(all) != 1 || all[0].Name != "Ada" {
				t.Errorf("stored: %+v", all)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
