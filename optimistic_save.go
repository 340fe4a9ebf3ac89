package gormlock

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// isNew tells whether a struct that Save found no row for can be one that has not been stored yet: it has a key that
// the application made, and no version. Where 0 is a version a row can have, it cannot (V13).
func (w *versionWrite) isNew(row *versionRow) bool {
	return w.checked && !w.model.column.loaded(row.expected)
}

// insertInstead stores the new struct by a plain INSERT: GORM's own way, an upsert, would overwrite a row that another
// writer makes in between (G5). Associations and hooks are the update's, as they are in GORM.
func (w *versionWrite) insertInstead(db *gorm.DB) error {
	stmt := db.Statement
	tx := db.Session(&gorm.Session{NewDB: true, SkipHooks: true}).Omit(clause.Associations)
	if stmt.Table != w.model.table {
		tx = tx.Table(stmt.Table)
	}
	if err := tx.Create(w.rows[0].row.Addr().Interface()).Error; err != nil {
		return err
	}
	w.inserted, db.RowsAffected = true, 1
	return nil
}
