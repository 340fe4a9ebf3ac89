package roots_test

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	invoice struct {
		ID        int64
		Title     string
		Items     []invoiceItem `gorm:"foreignKey:InvoiceID"`
		UpdatedAt time.Time
		Version   int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	invoiceItem struct {
		ID        int64
		InvoiceID int64
		Invoice   *invoice `gormlock:"root"`
		CrateID   *int64
		Product   string
		Version   int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	// crate has no time that GORM sets, and holds items that belong to an invoice.
	crate struct {
		ID      int64
		Items   []invoiceItem `gorm:"foreignKey:CrateID"`
		Version int64         `gorm:"not null;default:1" gormlock:"version"`
	}
)

func appendedTo(t *testing.T, db *gorm.DB, owner any, item map[string]any) error {
	t.Helper()
	return db.Model(owner).Association("Items").Append(item)
}

func setOf(id int64) func(db *gorm.DB) error {
	return func(db *gorm.DB) error {
		return stand.ErrorOf(gorm.G[invoice](db).Where("id = ?", id).Set(clause.Association{Association: "Items", Type: clause.OpCreate,
			Set: []clause.Assignment{{Column: clause.Column{Name: "product"}, Value: "p"}}}).Update(db.Statement.Context))
	}
}

// GORM stores the row of a map, which moves its root, and then updates the root as it was before. Outside of a transaction the second
// statement would be stale by the first: nothing is stored.
func TestAppendOfAMap_toItsRoot(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&crate{}, &invoice{}, &invoiceItem{}})
	skipping := db.Session(&gorm.Session{SkipDefaultTransaction: true})
	for how, add := range map[string]func(db *gorm.DB) error{
		"Append": func(db *gorm.DB) error {
			one := stand.Row[invoice](t, db, 1)
			return appendedTo(t, db, &one, map[string]any{"product": "p"})
		},
		"Append of a slice": func(db *gorm.DB) error {
			one := stand.Row[invoice](t, db, 1)
			return db.Model(&one).Association("Items").Append([]map[string]any{{"product": "p"}})
		},
		"of many": func(db *gorm.DB) error {
			many := []invoice{stand.Row[invoice](t, db, 1)}
			return db.Model(&many).Association("Items").Append(map[string]any{"product": "p"})
		},
		"Set of gorm.G": setOf(1),
	} {
		for _, model := range []any{&invoiceItem{}, &invoice{}, &crate{}} {
			stand.MustDo(t, db.Where("1=1").Delete(model))
		}
		stand.MustDo(t, db.Create(&invoice{ID: 1}))
		for _, outside := range []*gorm.DB{db, skipping} {
			if err := add(outside); !errors.Is(err, gormlock.ErrNoTransaction) {
				t.Errorf("%s: %v", how, err)
			}
		}
		var items int64
		stand.MustDo(t, db.Model(&invoiceItem{}).Count(&items))
		stand.Equal(t, how+": items", items, 0)
		stand.Equal(t, how+": version", stand.Row[invoice](t, db, 1).Version, 1)
		stand.Must(t, db.Transaction(add))
		stand.MustDo(t, db.Model(&invoiceItem{}).Count(&items))
		stand.Equal(t, how+": items", items, 1)
		stand.Equal(t, how+": version", stand.Row[invoice](t, db, 1).Version, 3) // as a root, and by its own update
	}
}

// Where GORM does not update the root, the row is stored outside of a transaction too.
func TestAppendOfAMap_toAnother(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&crate{}, &invoice{}, &invoiceItem{}})
	i, c := stand.Made(t, db, invoice{}), stand.Made(t, db, crate{})
	stand.Must(t, appendedTo(t, db, &c, map[string]any{"product": "p", "invoice_id": i.ID}))
	stand.Equal(t, "moved", stand.Row[invoice](t, db, i.ID).Version, 2)
	i = stand.Row[invoice](t, db, i.ID)
	stand.Must(t, appendedTo(t, db.Session(&gorm.Session{SkipHooks: true}), &i, map[string]any{"product": "p"}))
	stand.Equal(t, "moved again", stand.Row[invoice](t, db, i.ID).Version, 3)

	plain := stand.Versioned(t, []any{&firm{}, &order{}, &line{}})
	o := stand.Made(t, plain, order{})
	stand.Must(t, plain.Model(&o).Association("Lines").Append(map[string]any{"qty": 1}))
	stand.Equal(t, "moved", stand.Row[order](t, plain, o.ID).Version, 2)
}

// GORM returns only the error of the last map of a slice. In a transaction, the refusal of another one fails the commit.
func TestAppendOfMaps_oneIsRefused(t *testing.T) {
	t.Parallel()
	for how, opts := range map[string][]pgtest.Option{"journal": nil, "PrepareStmt": {pgtest.PrepareStmt()}} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&crate{}, &invoice{}, &invoiceItem{}}, opts...)
			i := stand.Made(t, db, invoice{})
			for _, bad := range []map[string]any{
				{"product": "a", "invoice_id": gorm.Expr("1")},
				{"product": "a", "invoice_id": i.ID + 9},
			} {
				c := stand.Made(t, db, crate{})
				err := db.Transaction(func(tx *gorm.DB) error {
					return tx.Model(&c).Association("Items").Append([]map[string]any{bad, {"product": "b", "invoice_id": i.ID}})
				})
				var stored int64
				stand.MustDo(t, db.Model(&invoiceItem{}).Where("crate_id = ?", c.ID).Count(&stored))
				if err == nil || stored > 0 {
					t.Errorf("%v: %d stored, %v", bad, stored, err)
				}
			}
		})
	}
}
