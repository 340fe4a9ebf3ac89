package invariants

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
)

// savers are the forms of Save and its like.
var savers = []form{
	{name: "Save", code: "x.A = 90; tx.Save(&x)", keeps: true,
		prepare: assigned(func(c *cell, tx *gorm.DB) error { return tx.Save(c.h.ptr).Error })},
	{name: "Save of a slice", code: "x.A = 90; s := []T{x}; tx.Save(&s)", keeps: true,
		prepare: func(c *cell) func(*gorm.DB) error {
			set(c)
			s := c.slice()
			return func(tx *gorm.DB) error { return tx.Save(s).Error }
		}},
	{name: "Save of pointers", code: "x.A = 90; tx.Save([]*T{&x})", keeps: true,
		prepare: func(c *cell) func(*gorm.DB) error {
			set(c)
			s := c.pointers()
			return func(tx *gorm.DB) error { return tx.Save(s).Error }
		}},
	{name: "Save of two", code: "x.A = 90; s := []T{x, y}; tx.Save(&s)", two: true, keeps: true,
		prepare: func(c *cell) func(*gorm.DB) error {
			set(c)
			s := c.slice(c.second)
			return func(tx *gorm.DB) error { return tx.Save(s).Error }
		}},
	{name: "Save of the other and this", code: "x.A = 90; tx.Save([]*T{&y, &x})", two: true, keeps: true,
		prepare: func(c *cell) func(*gorm.DB) error {
			set(c)
			s := c.pointers(c.second)
			reverse(s)
			return func(tx *gorm.DB) error { return tx.Save(s).Error }
		}},
	{name: "Save, version omitted", code: `x.A = 90; tx.Omit("version").Save(&x)`,
		prepare: assigned(func(c *cell, tx *gorm.DB) error { return tx.Omit(c.shape.version.DBName).Save(c.h.ptr).Error })},
	{name: "Save, a selected", code: `x.A = 90; tx.Select("a").Save(&x)`, partly: true,
		prepare: assigned(func(c *cell, tx *gorm.DB) error { return tx.Select("a").Save(c.h.ptr).Error })},
	{name: "Save, b omitted", code: `x.A = 90; tx.Omit("b").Save(&x)`, partly: true,
		prepare: assigned(func(c *cell, tx *gorm.DB) error { return tx.Omit("b").Save(c.h.ptr).Error })},
	{name: "Save with Returning", code: "x.A = 90; tx.Clauses(clause.Returning{}).Save(&x)", keeps: true,
		prepare: assigned(func(c *cell, tx *gorm.DB) error { return tx.Clauses(clause.Returning{}).Save(c.h.ptr).Error })},
	{name: "Save with Where", code: `x.A = 90; tx.Where("b < 1000\tOR b >= 1000").Save(&x)`,
		prepare: assigned(func(c *cell, tx *gorm.DB) error { return tx.Where("b < 1000\tOR b >= 1000").Save(c.h.ptr).Error })},
	{name: "Save, FullSaveAssociations", code: "x.A = 90; tx.Session(&gorm.Session{FullSaveAssociations: true}).Save(&x)", keeps: true,
		prepare: assigned(func(c *cell, tx *gorm.DB) error {
			return tx.Session(&gorm.Session{FullSaveAssociations: true}).Save(c.h.ptr).Error
		})},
	{name: "Updates, itself", code: "x.A = 90; tx.Updates(&x)", keeps: true,
		prepare: assigned(func(c *cell, tx *gorm.DB) error { return tx.Updates(c.h.ptr).Error })},
	{name: "Updates, all selected", code: `x.A = 90; tx.Select("*").Updates(&x)`, keeps: true,
		prepare: assigned(func(c *cell, tx *gorm.DB) error { return tx.Select("*").Updates(c.h.ptr).Error })},
	{name: "G.Updates", code: "x.A = 90; gorm.G[T](tx).Updates(ctx, x)",
		prepare: assigned(func(c *cell, tx *gorm.DB) error { return c.shape.generic.Updates(tx, c.h.ptr) })},
}

// updaters are the forms of Update through the struct as Model.
var updaters = []form{
	{name: "Update", code: `tx.Model(&x).Update("a", 90)`, keeps: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error { return tx.Model(c.h.ptr).Update("a", written).Error })},
	{name: "Update, field name", code: `tx.Model(&x).Update("A", 90)`, keeps: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error { return tx.Model(c.h.ptr).Update("A", written).Error })},
	{name: "Update, expression", code: `tx.Model(&x).Update("a", gorm.Expr("b - b + 90"))`, keeps: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.h.ptr).Update("a", gorm.Expr("b - b + 90")).Error
		})},
	{name: "Update of a slice", code: `s := []T{x}; tx.Model(&s).Update("a", 90)`, keeps: true,
		prepare: func(c *cell) func(*gorm.DB) error {
			s := c.slice()
			return func(tx *gorm.DB) error { return tx.Model(s).Update("a", written).Error }
		}},
	{name: "Update of pointers", code: `tx.Model([]*T{&x, &y}).Update("a", 90)`, two: true, keeps: true,
		prepare: func(c *cell) func(*gorm.DB) error {
			s := c.pointers(c.second)
			return func(tx *gorm.DB) error { return tx.Model(s).Update("a", written).Error }
		}},
	{name: "Update of an array", code: `s := [1]T{x}; tx.Model(&s).Update("a", 90)`, keeps: true,
		prepare: func(c *cell) func(*gorm.DB) error {
			s := c.array()
			return func(tx *gorm.DB) error { return tx.Model(s).Update("a", written).Error }
		}},
	{name: "Update of a slice, expression", code: `s := []T{x, y}; tx.Model(&s).Update("a", gorm.Expr("b - b + 90"))`, two: true,
		prepare: func(c *cell) func(*gorm.DB) error {
			s := c.slice(c.second)
			return func(tx *gorm.DB) error { return tx.Model(s).Update("a", gorm.Expr("b - b + 90")).Error }
		}},
	{name: "Update of an edited struct", code: `x.B = 5; tx.Model(&x).Update("a", 90)`,
		prepare: func(c *cell) func(*gorm.DB) error {
			c.h.assign("B", int64(5))
			return func(tx *gorm.DB) error { return tx.Model(c.h.ptr).Update("a", written).Error }
		}},
	{name: "Updates, map", code: `tx.Model(&x).Updates(map[string]any{"a": 90})`, keeps: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.h.ptr).Updates(map[string]any{"a": written}).Error
		})},
	{name: "Updates, struct", code: "tx.Model(&x).Updates(T{A: 90})", keeps: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error { return tx.Model(c.h.ptr).Updates(c.values()).Error })},
	{name: "Updates, form", code: "tx.Model(&x).Updates(struct{ A int64 }{90})", keeps: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error { return tx.Model(c.h.ptr).Updates(formOfA{written}).Error })},
	{name: "UpdateColumn", code: `tx.Model(&x).UpdateColumn("a", 90)`, keeps: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error { return tx.Model(c.h.ptr).UpdateColumn("a", written).Error })},
	{name: "UpdateColumns", code: "tx.Model(&x).UpdateColumns(T{A: 90})", keeps: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error { return tx.Model(c.h.ptr).UpdateColumns(c.values()).Error })},
	{name: "UpdateColumns, map, expression", code: `tx.Model(&x).UpdateColumns(map[string]any{"a": gorm.Expr("b - b + 90")})`, keeps: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.h.ptr).UpdateColumns(map[string]any{"a": gorm.Expr("b - b + 90")}).Error
		})},
	{name: "Select", code: `tx.Model(&x).Select("a").Updates(T{A: 90})`, keeps: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error { return tx.Model(c.h.ptr).Select("a").Updates(c.values()).Error })},
	{name: "Select, version too", code: `x.A = 90; tx.Model(&x).Select("a", "version").Updates(&x)`,
		prepare: assigned(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.h.ptr).Select("a", c.shape.version.DBName).Updates(c.h.ptr).Error
		})},
	{name: "Select, version alone", code: `tx.Model(&x).Select("version").Updates(&x)`, does: other,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.h.ptr).Select(c.shape.version.DBName).Updates(c.h.ptr).Error
		}), only: movable},
	{name: "Omit, version", code: `tx.Model(&x).Omit("version").Updates(T{A: 90})`,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.h.ptr).Omit(c.shape.version.DBName).Updates(c.values()).Error
		})},
	{name: "unversioned column", code: `tx.Model(&x).Update("note", "n")`, does: other, keeps: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error { return tx.Model(c.h.ptr).Update("note", "n").Error })},
	{name: "Set clause", refusal: "WHERE conditions required", code: `tx.Model(&x).Clauses(clause.Set{{Column: clause.Column{Name: "a"}, Value: 90}}).Updates(map[string]any{})`,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.h.ptr).Clauses(setA()).Updates(map[string]any{}).Error
		})},
	{name: "Set clause with Where", code: `tx.Model(&x).Where(key).Clauses(clause.Set{{Column: clause.Column{Name: "a"}, Value: 90}}).Updates(map[string]any{})`,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.h.ptr).Clauses(c.where(), setA()).Updates(map[string]any{}).Error
		})},
	{name: "Returning all", code: `tx.Model(&x).Clauses(clause.Returning{}).Update("a", 90)`, keeps: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.h.ptr).Clauses(clause.Returning{}).Update("a", written).Error
		})},
	{name: "Returning a column", code: `tx.Model(&x).Clauses(clause.Returning{Columns: []clause.Column{{Name: "b"}}}).Update("a", 90)`, keeps: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.h.ptr).Clauses(returning("b")).Update("a", written).Error
		})},
	{name: "Model by value", code: `tx.Model(x).Update("a", 90)`,
		prepare: plainly(func(c *cell, tx *gorm.DB) error { return tx.Model(c.h.row().Interface()).Update("a", written).Error })},
	{name: "with a condition", code: `tx.Model(&x).Where("b < 1000").Or("b >= 1000").Update("a", 90)`, plural: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.h.ptr).Where("b < 1000").Or("b >= 1000").Update("a", written).Error
		})},
	{name: "IfUnchanged", code: `before := x; tx.Model(&x).Clauses(gormlock.IfUnchanged(&before, "b")).Update("a", 90)`, keeps: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.h.ptr).Clauses(gormlock.IfUnchanged(c.h.before, "b")).Update("a", written).Error
		})},
	{name: "PreserveVersion", code: `tx.Model(&x).Clauses(gormlock.PreserveVersion()).Update("a", 90)`, only: movable,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.h.ptr).Clauses(gormlock.PreserveVersion()).Update("a", written).Error
		})},
	{name: "Touch", code: "gormlock.Touch(tx, &x)", does: other, keeps: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error { return gormlock.Touch(tx, c.h.ptr) })},
}

func setA() clause.Set {
	return clause.Set{{Column: clause.Column{Name: "a"}, Value: written}}
}

func returning(names ...string) clause.Returning {
	var r clause.Returning
	for _, name := range names {
		r.Columns = append(r.Columns, clause.Column{Name: name})
	}
	return r
}
