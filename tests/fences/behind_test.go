package fences_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A struct without a key stands for no row, although the sequence of the key gives it that of one: with a fence alone too.
func TestUpsert_whereTheSequenceIsBehindAFencedRow(t *testing.T) {
	t.Parallel()
	for name, save := range map[string]func(db *gorm.DB, b *boat) error{
		"a slice": func(db *gorm.DB, _ *boat) error { return db.Save(&[]cargo{{BoatID: 2, Text: "new"}}).Error },
		"beside one with key": func(db *gorm.DB, b *boat) error {
			return db.Save(&[]cargo{b.Cargos[0], {BoatID: 2, Text: "new"}}).Error
		},
		"a child": func(db *gorm.DB, b *boat) error {
			b.Cargos = []cargo{{Text: "new"}}
			return db.Save(b).Error
		},
		"a child, saved whole": func(db *gorm.DB, b *boat) error {
			b.Cargos = append(b.Cargos, cargo{Text: "new"})
			return db.Session(&gorm.Session{FullSaveAssociations: true}).Save(b).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Fenced(t, []any{&boat{}, &cargo{}})
			db = stand.With(db, stand.Issue(t, db, "boat", 1))
			for i := range int64(3) {
				stand.Must(t, db.Create(&boat{ID: i + 1, Cargos: []cargo{{ID: i + 1, Text: "old"}}}).Error)
			}
			var b boat
			stand.Must(t, db.Preload("Cargos").First(&b, 2).Error)
			if err := save(db, &b); err == nil {
				t.Error("another row was written")
			}
			var now []cargo
			stand.Must(t, db.Order("id").Find(&now).Error)
			stand.Equal(t, "rows", len(now), 3)
			for i, c := range now {
				stand.Equal(t, "text", c.Text, "old")
				stand.Equal(t, "boat", c.BoatID, int64(i+1))
			}
		})
	}
}

// Rows that the caller's own condition keeps as they are do not count as refused.
func TestUpsert_ofAFencedRowUnderACondition(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&boat{}, &cargo{}})
	db = stand.With(db, stand.Issue(t, db, "boat", 1))
	stand.Must(t, db.Create(&boat{ID: 1}).Error)
	stand.Must(t, db.Exec("INSERT INTO cargos (id, boat_id, text) VALUES (50, 1, 'old')").Error)
	never := clause.OnConflict{UpdateAll: true, Where: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "false"}}}}
	stand.Must(t, db.Clauses(never).Create(&[]cargo{{ID: 50, BoatID: 1, Text: "new"}, {BoatID: 1, Text: "another"}}).Error)
	stand.Equal(t, "text", stand.Row[cargo](t, db, 50).Text, "old")
	stand.Equal(t, "rows", db.Find(&[]cargo{}).RowsAffected, 2)
}
