package invariants

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
)

// expecters name a version: the one that the row has.
var expecters = []form{
	{name: "form with the row's version", code: "tx.Model(&x).Updates(struct{ A, Version int64 }{90, current})", kind: expects,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.h.ptr).Updates(c.formWithVersion(c.current)).Error
		}), only: movable},
	{name: "map with the row's version", code: `tx.Model(&x).Updates(map[string]any{"a": 90, "version": current})`, kind: expects,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.h.ptr).Updates(c.mapWithVersion(c.current)).Error
		}), only: movable},
	{name: "struct with the row's version", code: "tx.Model(&x).Updates(T{A: 90, Version: current})", kind: expects,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			v := c.values()
			c.shape.setVersion(v, c.current)
			return tx.Model(c.h.ptr).Updates(v).Error
		}), only: movable},
	{name: "form with the struct's version", code: "tx.Model(&x).Updates(struct{ A, Version int64 }{90, x.Version})",
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.h.ptr).Updates(c.formWithVersion(c.shape.versionOf(c.h.ptr))).Error
		}), only: movable},
	{name: "map with the struct's version", code: `tx.Model(&x).Updates(map[string]any{"a": 90, "version": x.Version})`,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.h.ptr).Updates(c.mapWithVersion(c.shape.versionOf(c.h.ptr))).Error
		}), only: isInt},
	{name: "ExpectVersion, Update", code: `tx.Clauses(gormlock.ExpectVersion(current)).Model(&x).Update("a", 90)`, kind: expects,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Clauses(gormlock.ExpectVersion(c.current)).Model(c.h.ptr).Update("a", written).Error
		})},
	{name: "ExpectVersion, Save", code: "x.A = 90; tx.Clauses(gormlock.ExpectVersion(current)).Save(&x)", kind: expects,
		prepare: assigned(func(c *cell, tx *gorm.DB) error {
			return tx.Clauses(gormlock.ExpectVersion(c.current)).Save(c.h.ptr).Error
		})},
	{name: "ExpectVersion, expression", code: `tx.Clauses(gormlock.ExpectVersion(current)).Model(&x).Update("a", gorm.Expr("90"))`, kind: expects,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Clauses(gormlock.ExpectVersion(c.current)).Model(c.h.ptr).Update("a", gorm.Expr("90")).Error
		})},
	{name: "ExpectVersion, Returning", code: `tx.Clauses(gormlock.ExpectVersion(current), clause.Returning{}).Model(&x).Update("a", 90)`, kind: expects,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Clauses(gormlock.ExpectVersion(c.current), clause.Returning{}).Model(c.h.ptr).Update("a", written).Error
		})},
	{name: "ExpectVersion, Delete", code: "tx.Clauses(gormlock.ExpectVersion(current)).Delete(&x)", kind: expects, does: deletes,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Clauses(gormlock.ExpectVersion(c.current)).Delete(c.h.ptr).Error
		})},
	{name: "ExpectVersion, G.Update", code: `gorm.G[T](tx, gormlock.ExpectVersion(current)).Where(key).Update(ctx, "a", 90)`, kind: expects,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return c.shape.generic.Update(tx, c.where(), "a", written, gormlock.ExpectVersion(c.current))
		})},
	{name: "ExpectVersion, bulk", code: `tx.Model(&T{}).Clauses(gormlock.ExpectVersion(current)).Where(key).Update("a", 90)`, kind: expects,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.empty()).Clauses(gormlock.ExpectVersion(c.current), c.where()).Update("a", written).Error
		})},
	{name: "ExpectVersion, Touch", code: "gormlock.Touch(tx.Clauses(gormlock.ExpectVersion(current)), &x)", kind: expects, does: other,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return gormlock.Touch(tx.Clauses(gormlock.ExpectVersion(c.current)), c.h.ptr)
		})},
}

// ignorers ask for no check.
var ignorers = []form{
	{name: "IgnoreVersion, Update", code: `tx.Model(&x).Clauses(gormlock.IgnoreVersion()).Update("a", 90)`, kind: blind, plural: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.h.ptr).Clauses(gormlock.IgnoreVersion()).Update("a", written).Error
		})},
	{name: "IgnoreVersion, Update of a slice", code: `s := []T{x, y}; tx.Model(&s).Clauses(gormlock.IgnoreVersion()).Update("a", 90)`, kind: blind, plural: true, two: true,
		prepare: func(c *cell) func(*gorm.DB) error {
			s := c.slice(c.second)
			return func(tx *gorm.DB) error {
				return tx.Model(s).Clauses(gormlock.IgnoreVersion()).Update("a", written).Error
			}
		}},
	{name: "IgnoreVersion, expression", code: `tx.Model(&x).Clauses(gormlock.IgnoreVersion()).Update("a", gorm.Expr("90"))`, kind: blind, plural: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.h.ptr).Clauses(gormlock.IgnoreVersion()).Update("a", gorm.Expr("90")).Error
		})},
	{name: "IgnoreVersion, Save", code: "x.A = 90; tx.Clauses(gormlock.IgnoreVersion()).Save(&x)", kind: blind,
		prepare: assigned(func(c *cell, tx *gorm.DB) error {
			return tx.Clauses(gormlock.IgnoreVersion()).Save(c.h.ptr).Error
		})},
	{name: "IgnoreVersion, upsert", code: "x.A = 90; tx.Clauses(gormlock.IgnoreVersion(), clause.OnConflict{UpdateAll: true}).Create(&x)", kind: blind,
		prepare: assigned(func(c *cell, tx *gorm.DB) error {
			return tx.Clauses(gormlock.IgnoreVersion(), clause.OnConflict{UpdateAll: true}).Create(c.h.ptr).Error
		}), only: movable},
	{name: "IgnoreVersion, Delete", code: "tx.Clauses(gormlock.IgnoreVersion()).Delete(&x)", kind: blind, does: deletes,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Clauses(gormlock.IgnoreVersion()).Delete(c.h.ptr).Error
		})},
	{name: "IgnoreVersion, Touch", code: "gormlock.Touch(tx.Clauses(gormlock.IgnoreVersion()), &x)", kind: blind, does: other,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return gormlock.Touch(tx.Clauses(gormlock.IgnoreVersion()), c.h.ptr)
		})},
	{name: "bulk", code: `tx.Model(&T{}).Where(key).Update("a", 90)`, kind: blind, plural: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.empty()).Clauses(c.where()).Update("a", written).Error
		})},
	{name: "bulk, UpdateColumns", code: `tx.Model((*T)(nil)).Where(key).UpdateColumns(map[string]any{"a": 90})`, kind: blind, plural: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.empty()).Clauses(c.where()).UpdateColumns(map[string]any{"a": written}).Error
		})},
	{name: "G.Update", code: `gorm.G[T](tx).Where(key).Update(ctx, "a", 90)`, kind: blind, plural: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error { return c.shape.generic.Update(tx, c.where(), "a", written) })},
	{name: "G.Set.Update", code: `gorm.G[T](tx).Where(key).Set(clause.Assignment{…a…}).Update(ctx)`, kind: blind, plural: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return c.shape.generic.Set(tx, c.where(), []clause.Assigner{clause.Assignment{Column: clause.Column{Name: "a"}, Value: written}})
		})},
	{name: "Delete by key", code: "tx.Where(key).Delete(&T{})", kind: blind, does: deletes, plural: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error { return tx.Clauses(c.where()).Delete(c.empty()).Error })},
	{name: "G.Delete", code: "gorm.G[T](tx).Where(key).Delete(ctx)", kind: blind, does: deletes, plural: true,
		prepare: plainly(func(c *cell, tx *gorm.DB) error { return c.shape.generic.Delete(tx, c.where()) })},
}

// deleters remove the row, or mark it as removed.
var deleters = []form{
	{name: "Delete", code: "tx.Delete(&x)", does: deletes,
		prepare: plainly(func(c *cell, tx *gorm.DB) error { return tx.Delete(c.h.ptr).Error })},
	{name: "Delete, slice", code: "s := []T{x, y}; tx.Delete(&s)", does: deletes, two: true,
		prepare: func(c *cell) func(*gorm.DB) error {
			s := c.slice(c.second)
			return func(tx *gorm.DB) error { return tx.Delete(s).Error }
		}},
	{name: "Delete, Unscoped", code: "tx.Unscoped().Delete(&x)", does: deletes, only: isSoft,
		prepare: plainly(func(c *cell, tx *gorm.DB) error { return tx.Unscoped().Delete(c.h.ptr).Error })},
	{name: "Delete, by Model", code: "tx.Model(&x).Delete(&T{})", does: deletes,
		prepare: plainly(func(c *cell, tx *gorm.DB) error { return tx.Model(c.h.ptr).Delete(c.empty()).Error })},
	{name: "Delete, Returning", code: "tx.Clauses(clause.Returning{}).Delete(&x)", does: deletes,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Clauses(clause.Returning{}).Delete(c.h.ptr).Error
		})},
	{name: "Delete, IfUnchanged", code: `before := x; tx.Clauses(gormlock.IfUnchanged(&before, "b")).Delete(&x)`, does: deletes,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Clauses(gormlock.IfUnchanged(c.h.before, "b")).Delete(c.h.ptr).Error
		})},
	{name: "soft delete by Update", code: `tx.Model(&x).Update("deleted_at", time.Now())`, does: deletes, only: isSoft,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.h.ptr).Update("deleted_at", tx.NowFunc()).Error
		})},
	{name: "restore", code: `tx.Unscoped().Model(&x).Updates(map[string]any{"deleted_at": nil, "a": 90})`, only: isSoft,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Unscoped().Model(c.h.ptr).Updates(map[string]any{"deleted_at": nil, "a": written}).Error
		})},
}
