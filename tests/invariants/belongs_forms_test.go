package invariants

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
)

// bonding is a way to write a struct that belongs to others.
type bonding struct {
	name, code string
	named      bool // it names the foreign key itself: 3
	stores     bool // it stores that of the struct
	nonZero    bool // unless it is empty
	saves      bool // it stores that of the association
	two        bool // another struct is written with it
	blind      bool // it compares nothing
	merges     bool // it merges columns, and no associations
	write      func(b *bonded, tx *gorm.DB, base *Clerk) error
}

// onlyA has a struct with no more than what is to be written.
func onlyA() Clerk { return Clerk{A: written} }

func (b *bonded) model(tx *gorm.DB) *gorm.DB { return tx.Model(b.x) }

func (b *bonded) upsert(tx *gorm.DB, conflict clause.OnConflict) error {
	return tx.Clauses(conflict).Create(b.x).Error
}

func updating(columns ...string) clause.OnConflict {
	return clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns(columns)}
}

var bondings = []bonding{
	{name: "Save", code: "tx.Save(&x)", stores: true, saves: true, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error { return tx.Save(b.x).Error }},
	{name: "Save of a slice", code: "tx.Save([]*T{&x, &y})", stores: true, saves: true, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error { return tx.Save([]*Clerk{b.x, b.y}).Error }},
	{name: "Save, FullSaveAssociations", code: "full.Save(&x)", stores: true, saves: true, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error { return full(tx).Save(b.x).Error }},
	{name: "Save, associations omitted", code: "tx.Omit(clause.Associations).Save(&x)", stores: true, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error {
		return tx.Omit(clause.Associations).Save(b.x).Error
	}},
	{name: "Save, association omitted", code: "tx.Omit(relation).Save(&x)", stores: true, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error {
		return tx.Omit(b.bond.relation).Save(b.x).Error
	}},
	{name: "Save, key omitted", code: "tx.Omit(column).Save(&x)", write: func(b *bonded, tx *gorm.DB, _ *Clerk) error { return tx.Omit(b.bond.column).Save(b.x).Error }},
	{name: "Updates, itself", code: "tx.Updates(&x)", stores: true, nonZero: true, saves: true, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error { return tx.Updates(b.x).Error }},
	{name: "Updates, a selected", code: `tx.Select("a").Updates(&x)`, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error { return tx.Select("a").Updates(b.x).Error }},
	{name: "Updates, key selected", code: `tx.Select("a", column).Updates(&x)`, stores: true, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error {
		return tx.Select("a", b.bond.column).Updates(b.x).Error
	}},
	{name: "Update", code: `tx.Model(&x).Update("a", 90)`, saves: true, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error { return b.model(tx).Update("a", written).Error }},
	{name: "Update of a slice", code: `tx.Model([]*T{&x}).Update("a", 90)`, saves: true, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error {
		return tx.Model([]*Clerk{b.x}).Update("a", written).Error
	}},
	{name: "Update of two", code: `tx.Model([]*T{&x, &y}).Update("a", 90)`, saves: true, two: true, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error {
		return tx.Model([]*Clerk{b.x, b.y}).Update("a", written).Error
	}},
	{name: "Update of the key", code: `tx.Model(&x).Update(column, 3)`, named: true, saves: true, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error {
		return b.model(tx).Update(b.bond.column, b.bond.value(3)).Error
	}},
	{name: "UpdateColumn of the key", code: `tx.Model(&x).UpdateColumn(field, 3)`, named: true, saves: true, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error {
		return b.model(tx).UpdateColumn(b.bond.field, b.bond.value(3)).Error
	}},
	{name: "Updates, map with the key", code: `tx.Model(&x).Updates(map[string]any{field: 3, "a": 90})`, named: true, saves: true, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error {
		return b.model(tx).Updates(map[string]any{b.bond.field: b.bond.value(3), "a": written}).Error
	}},
	{name: "Updates, map with the key, association omitted", code: `tx.Model(&x).Omit(relation).Updates(map[string]any{column: 3})`, named: true, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error {
		return b.model(tx).Omit(b.bond.relation).Updates(map[string]any{b.bond.column: b.bond.value(3)}).Error
	}},
	{name: "Updates, pointer to a map with the key", code: `tx.Model(&x).Updates(&map[string]any{column: 3})`, named: true, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error {
		return b.model(tx).Updates(&map[string]any{b.bond.column: b.bond.value(3)}).Error
	}},
	{name: "Updates, form with the key", code: `tx.Model(&x).Updates(T{A: 90, key: 3})`, named: true, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error {
		form := onlyA()
		b.bond.setKey(&form, 3)
		return b.model(tx).Updates(form).Error
	}},
	{name: "Updates, form", code: `tx.Model(&x).Updates(T{A: 90})`, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error { return b.model(tx).Updates(onlyA()).Error }},
	{name: "Update of the key, expression", code: `tx.Model(&x).Omit(relation).Update(column, gorm.Expr("?", 3))`, named: true, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error {
		return b.model(tx).Omit(b.bond.relation).Update(b.bond.column, gorm.Expr("?", b.bond.value(3))).Error
	}},
	{name: "upsert, UpdateAll", code: "tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&x)", stores: true, saves: true, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error {
		return b.upsert(tx, clause.OnConflict{UpdateAll: true})
	}},
	{name: "upsert, key", code: `tx.Clauses(clause.OnConflict{DoUpdates: a, key}).Create(&x)`, stores: true, saves: true, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error {
		return b.upsert(tx, updating("a", b.bond.column))
	}},
	{name: "Save, ExpectVersion", code: "tx.Clauses(gormlock.ExpectVersion(x.Version)).Save(&x)", stores: true, saves: true, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error {
		return tx.Clauses(gormlock.ExpectVersion(b.x.Version)).Save(b.x).Error
	}},
	{name: "Save, IgnoreVersion", code: "tx.Clauses(gormlock.IgnoreVersion()).Save(&x)", stores: true, saves: true, blind: true, write: func(b *bonded, tx *gorm.DB, _ *Clerk) error {
		return tx.Clauses(gormlock.IgnoreVersion()).Save(b.x).Error
	}},
	{name: "SaveMerged", code: "gormlock.SaveMerged(tx, &x, &base)", stores: true, blind: true, merges: true, write: func(b *bonded, tx *gorm.DB, base *Clerk) error {
		return gormlock.SaveMerged(tx, b.x, base)
	}},
}
