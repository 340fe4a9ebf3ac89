package invariants

import (
	"hash/fnv"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// condition lets all rows of a table through, the bystander's too, if it does not stand in brackets beside the struct's key.
type condition struct {
	code string
	on   func(tx *gorm.DB) *gorm.DB
}

// Both sides of each OR are true of all rows, for the key may be written before it or behind it.
var conditions = []condition{
	{`.Where("b >= 0").Or("b > -1")`, func(tx *gorm.DB) *gorm.DB { return tx.Where("b >= 0").Or("b > ?", -1) }},
	{`.Or("b >= 0").Or("b > -1")`, func(tx *gorm.DB) *gorm.DB { return tx.Or("b >= 0").Or("b > -1") }},
	{`.Where("b >= 0\n\tOR b > -1")`, func(tx *gorm.DB) *gorm.DB { return tx.Where("b >= ?\n\tOR b > ?", 0, -1) }},
	{`.Where("b > -2").Where("b >= 0\nor\nb > -1")`, func(tx *gorm.DB) *gorm.DB {
		return tx.Where("b > -2").Where("b >= 0\nor\nb > -1")
	}},
	{`.Where("(b >= 0)or(b > -1)")`, func(tx *gorm.DB) *gorm.DB { return tx.Where("(b >= 0)or(b > -1)") }},
	{`.Where("b >= 0/**/OR/**/b > -1 -- all\n")`, func(tx *gorm.DB) *gorm.DB { return tx.Where("b >= 0/**/OR/**/b > -1 -- all\n") }},
	{`.Where(tx.Where("b >= 0").Or("b > -1"))`, func(tx *gorm.DB) *gorm.DB {
		clean := tx.Session(&gorm.Session{NewDB: true})
		return tx.Where(clean.Where("b >= 0").Or("b > -1"))
	}},
	{`.Where("b >= 0").Or(tx.Where("b > -1").Where("u <> ''"))`, func(tx *gorm.DB) *gorm.DB {
		clean := tx.Session(&gorm.Session{NewDB: true})
		return tx.Where("b >= 0").Or(clean.Where("b > -1").Where("u <> ''"))
	}},
	{`.Not("b < 0\tOR b >= 0")`, func(tx *gorm.DB) *gorm.DB { return tx.Not("b < 0\tOR b >= 0") }},
	{`.Not("b < 0").Or("b >= 0")`, func(tx *gorm.DB) *gorm.DB { return tx.Not("b < 0").Or("b >= 0") }},
	{`.Where(map[string]any{"a": …}).Or(map[string]any{"note": …})`, func(tx *gorm.DB) *gorm.DB {
		return tx.Where(map[string]any{"a": []int64{10, written}}).Or(map[string]any{"note": []string{"", "n"}})
	}},
	{`.Where(map[string]any{"b": gorm.Expr("b OR b > -1")})`, func(tx *gorm.DB) *gorm.DB {
		return tx.Where(map[string]any{"b": gorm.Expr("b OR b > ?", -1)})
	}},
	{`.Where(clause.Eq{Column: clause.Column{Name: "b >= 0 OR a", Raw: true}, Value: 10})`, func(tx *gorm.DB) *gorm.DB {
		return tx.Where(clause.Eq{Column: clause.Column{Name: "b >= 0 OR a", Raw: true}, Value: 10})
	}},
	{`.Clauses(clause.Where{Exprs: {b >= 0, clause.Or(b > -1)}})`, func(tx *gorm.DB) *gorm.DB {
		return tx.Clauses(clause.Where{Exprs: []clause.Expression{clause.Gte{Column: "b", Value: 0}, clause.Or(clause.Gt{Column: "b", Value: -1})}})
	}},
	{`.Scopes(b >= 0, Or b > -1)`, func(tx *gorm.DB) *gorm.DB {
		return tx.Scopes(func(tx *gorm.DB) *gorm.DB { return tx.Where("b >= 0").Or("b > -1") })
	}},
}

// condition is the one of this cell: those that have the same form have all of them, between them.
func (c *cell) condition() condition {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(c.name()))
	return conditions[int(sum.Sum32())%len(conditions)]
}

// among puts the cell's condition on a statement.
func (c *cell) among(tx *gorm.DB) *gorm.DB {
	return c.condition().on(tx)
}

// conditional is a form whose statement has a condition, and a row beside that of the struct which the condition lets through.
func conditional(f form) form {
	f.name, f.beside = "condition, "+f.name, true
	return f
}

// conditionals are statements about a struct that have a condition of the caller's.
var conditionals = []form{
	conditional(form{name: "Update", code: `tx.CONDITION.Model(&x).Update("a", 90)`,
		prepare: plainly(func(c *cell, tx *gorm.DB) error { return c.among(tx).Model(c.h.ptr).Update("a", written).Error })}),
	conditional(form{name: "expression", code: `tx.CONDITION.Model(&x).UpdateColumns(map[string]any{"a": gorm.Expr("b - b + 90")})`,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return c.among(tx).Model(c.h.ptr).UpdateColumns(map[string]any{"a": gorm.Expr("b - b + 90")}).Error
		})}),
	conditional(form{name: "Returning", code: `tx.CONDITION.Model(&x).Clauses(clause.Returning{}).Updates(T{A: 90})`,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return c.among(tx).Model(c.h.ptr).Clauses(clause.Returning{}).Updates(c.values()).Error
		})}),
	conditional(form{name: "Save", code: `x.A = 90; tx.CONDITION.Save(&x)`,
		prepare: assigned(func(c *cell, tx *gorm.DB) error { return c.among(tx).Save(c.h.ptr).Error })}),
	conditional(form{name: "Updates, itself", code: `x.A = 90; tx.CONDITION.Updates(&x)`,
		prepare: assigned(func(c *cell, tx *gorm.DB) error { return c.among(tx).Updates(c.h.ptr).Error })}),
	conditional(form{name: "slice", two: true, code: `tx.CONDITION.Model([]*T{&x, &y}).Update("a", 90)`,
		prepare: func(c *cell) func(*gorm.DB) error {
			s := c.pointers(c.second)
			return func(tx *gorm.DB) error { return c.among(tx).Model(s).Update("a", written).Error }
		}}),
	conditional(form{name: "SET", code: `tx.CONDITION.Model(&x).Clauses(clause.Set{…a…}).Updates(map[string]any{})`,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return c.among(tx).Model(c.h.ptr).Clauses(setA()).Updates(map[string]any{}).Error
		})}),
	conditional(form{name: "unversioned column", does: other, code: `tx.CONDITION.Model(&x).Update("note", "n")`,
		prepare: plainly(func(c *cell, tx *gorm.DB) error { return c.among(tx).Model(c.h.ptr).Update("note", "n").Error })}),
	conditional(form{name: "Delete", does: deletes, code: `tx.CONDITION.Delete(&x)`,
		prepare: plainly(func(c *cell, tx *gorm.DB) error { return c.among(tx).Delete(c.h.ptr).Error })}),
	conditional(form{name: "Delete, Unscoped, by Model", does: deletes, only: isSoft, code: `tx.CONDITION.Unscoped().Model(&x).Delete(&T{})`,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return c.among(tx).Unscoped().Model(c.h.ptr).Delete(c.empty()).Error
		})}),
	conditional(form{name: "Delete, slice", does: deletes, two: true, code: `s := []T{x, y}; tx.CONDITION.Delete(&s)`,
		prepare: func(c *cell) func(*gorm.DB) error {
			s := c.slice(c.second)
			return func(tx *gorm.DB) error { return c.among(tx).Delete(s).Error }
		}}),
	conditional(form{name: "IgnoreVersion", kind: blind, code: `tx.CONDITION.Clauses(gormlock.IgnoreVersion()).Model(&x).Update("a", 90)`,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return c.among(tx).Clauses(gormlock.IgnoreVersion()).Model(c.h.ptr).Update("a", written).Error
		})}),
	conditional(form{name: "ExpectVersion", kind: expects, code: `tx.CONDITION.Clauses(gormlock.ExpectVersion(current)).Model(&x).Update("a", 90)`,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return c.among(tx).Clauses(gormlock.ExpectVersion(c.current)).Model(c.h.ptr).Update("a", written).Error
		})}),
	conditional(form{name: "IfMatch", kind: expects, does: deletes, code: `tx.CONDITION.Clauses(IfMatch(current)).Delete(&x)`,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return c.among(tx).Clauses(stand.IfMatch(c.currentTag())).Delete(c.h.ptr).Error
		})}),
	conditional(form{name: "IfUnchanged", code: `before := x; tx.CONDITION.Clauses(gormlock.IfUnchanged(&before, "b")).Model(&x).Update("a", 90)`,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return c.among(tx).Clauses(gormlock.IfUnchanged(c.h.before, "b")).Model(c.h.ptr).Update("a", written).Error
		})}),
	conditional(form{name: "SaveMerged", kind: merges, code: `base := x; x.A = 90; gormlock.SaveMerged(tx.CONDITION, &x, &base)`,
		prepare: func(c *cell) func(*gorm.DB) error { return merged(set, c.among)(c) }}),
	conditional(form{name: "Touch", does: other, code: `gormlock.Touch(tx.CONDITION, &x)`,
		prepare: plainly(func(c *cell, tx *gorm.DB) error { return gormlock.Touch(c.among(tx), c.h.ptr) })}),
	conditional(form{name: "G.Updates", code: `x.A = 90; gorm.G[T](tx).Where("b >= 0\nOR b > -1").Updates(ctx, x)`,
		prepare: assigned(func(c *cell, tx *gorm.DB) error {
			return c.shape.generic.UpdatesWhere(tx, clause.Expr{SQL: "b >= 0\nOR b > -1"}, c.h.ptr)
		})}),
	conditional(form{name: "upsert", kind: upserts, code: `x.A = 90; tx.Clauses(clause.OnConflict{Columns: key, DoUpdates: …a…, Where: clause.Where{… b >= 0 OR b > -1 …}}).Create(&x)`,
		prepare: assigned(func(c *cell, tx *gorm.DB) error {
			b := clause.Column{Table: c.shape.table, Name: "b"}
			where := clause.Where{Exprs: []clause.Expression{clause.Gte{Column: b, Value: 0}, clause.Or(clause.Gt{Column: b, Value: -1})}}
			return tx.Clauses(clause.OnConflict{Columns: c.onKey(), DoUpdates: clause.AssignmentColumns([]string{"a"}), Where: where}).Create(c.h.ptr).Error
		})}),
}
