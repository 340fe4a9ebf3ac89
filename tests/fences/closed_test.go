package fences_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// Text in the caller's conditions that closes a parenthesis of gormlock takes no condition of the fence away.
func TestFenceBesideConditions(t *testing.T) {
	t.Parallel()
	const text = "1=1) OR (1=1"
	raw := clause.Where{Exprs: []clause.Expression{gorm.Expr(text)}}
	key := []clause.Column{{Name: "id"}}
	stand.Beside(t, map[string]func(db *gorm.DB, r *report) error{
		"upsert": func(db *gorm.DB, r *report) error {
			return db.Clauses(clause.OnConflict{UpdateAll: true, Where: raw}).Create(r).Error
		},
		"upsert, one": func(db *gorm.DB, r *report) error {
			return db.Clauses(clause.OnConflict{Columns: key, DoUpdates: clause.AssignmentColumns([]string{"body"}), Where: raw}).Create(r).Error
		},
		"update": func(db *gorm.DB, r *report) error { return db.Model(r).Where(text).Update("body", "late").Error },
		"bulk": func(db *gorm.DB, _ *report) error {
			return db.Model(&report{}).Where(text).Update("body", "late").Error
		},
		"bulk, all": func(db *gorm.DB, _ *report) error {
			return db.Unscoped().Model(&report{}).Where(text).Update("body", "late").Error
		},
		"bulk, delete": func(db *gorm.DB, _ *report) error { return db.Unscoped().Where(text).Delete(&report{}).Error },
		"soft delete":  func(db *gorm.DB, _ *report) error { return db.Where(text).Delete(&report{}).Error },
	}, func(t *testing.T, write func(*gorm.DB, *report) error) {
		db := stand.Fenced(t, []any{&report{}, &reportNote{}})
		token := stand.Issue(t, db, "report", 1)
		r := report{Body: "first"}
		stand.Must(t, stand.With(db, token).Create(&r).Error)
		stand.Must(t, stand.With(db, stand.Issue(t, db, "report", 1)).Model(&r).Update("body", "later").Error)
		if err := write(stand.With(db, token), &report{ID: r.ID, Body: "late"}); err == nil {
			t.Error("it is no error")
		}
		var now report
		stand.Must(t, db.Unscoped().Take(&now, r.ID).Error)
		stand.Equal(t, "body", now.Body, "later")
		stand.Equal(t, "deleted", now.DeletedAt.Valid, false)
	})
}
