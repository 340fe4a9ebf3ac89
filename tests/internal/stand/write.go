package stand

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// UpdateAll turns a create into an upsert.
var UpdateAll = clause.OnConflict{UpdateAll: true}

// Made creates a row, and returns it as it was created.
func Made[T any](t testing.TB, db *gorm.DB, row T) T {
	t.Helper()
	Must(t, db.Create(&row).Error)
	return row
}

// Begin holds the ways in which a statement gets its transaction.
var Begin = map[string]func(db *gorm.DB, write func(tx *gorm.DB) error) error{
	"implicit": func(db *gorm.DB, write func(tx *gorm.DB) error) error { return write(db) },
	"explicit": func(db *gorm.DB, write func(tx *gorm.DB) error) error { return db.Transaction(write) },
	"none": func(db *gorm.DB, write func(tx *gorm.DB) error) error {
		return write(db.Session(&gorm.Session{SkipDefaultTransaction: true}))
	},
}

// Written holds the same writes of a model with a version, and of one without.
type Written[T any] struct {
	Rows [4]T
	One  *T
}

// Ways are the writes by name.
func (w *Written[T]) Ways(db *gorm.DB) map[string]func() error {
	rows := w.Rows[:]
	return map[string]func() error{
		"Create":             func() error { return db.Create(new(T)).Error },
		"Create of a slice":  func() error { s := make([]T, 3); return db.Create(&s).Error },
		"Update":             func() error { return db.Model(w.One).Update("balance", 1).Error },
		"Update, expression": func() error { return db.Model(w.One).Update("balance", gorm.Expr("balance + 1")).Error },
		"Save":               func() error { return db.Save(w.One).Error },
		"Update of a slice":  func() error { return db.Model(&rows).Update("balance", 1).Error },
		"Save of a slice":    func() error { return db.Save(&rows).Error },
		"bulk":               func() error { return db.Model(new(T)).Where("balance > 5").Update("note", "x").Error },
		"upsert":             func() error { return db.Clauses(UpdateAll).Create(w.One).Error },
		"in a transaction": func() error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Model(w.One).Update("balance", 1).Error })
		},
		"without one": func() error {
			return db.Session(&gorm.Session{SkipDefaultTransaction: true}).Model(w.One).Update("balance", 1).Error
		},
	}
}
