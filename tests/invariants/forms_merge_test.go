package invariants

import (
	"reflect"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/etag"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// base is the struct as it was read.
func (c *cell) base() any { return deepCopy(reflect.ValueOf(c.h.ptr)).Interface() }

// merged is a form of SaveMerged, of what edit makes of the struct.
func merged(edit func(c *cell), on func(tx *gorm.DB) *gorm.DB) func(*cell) func(*gorm.DB) error {
	return func(c *cell) func(*gorm.DB) error {
		base := c.base()
		edit(c)
		return func(tx *gorm.DB) error { return gormlock.SaveMerged(on(tx), c.h.ptr, base) }
	}
}

func asItIs(tx *gorm.DB) *gorm.DB { return tx }

// mergers write what the program changed on the row as it is.
var mergers = []form{
	{name: "SaveMerged", code: "base := x; x.A = 90; gormlock.SaveMerged(tx, &x, &base)", kind: merges, keeps: true, prepare: merged(set, asItIs)},
	{name: "SaveMerged of nothing", code: "base := x; gormlock.SaveMerged(tx, &x, &base)", kind: merges, does: other, keeps: true,
		prepare: merged(func(*cell) {}, asItIs)},
	{name: "SaveMerged, b too", code: "base := x; x.A, x.B = 90, 5; gormlock.SaveMerged(tx, &x, &base)", keeps: true,
		prepare: merged(func(c *cell) { set(c); c.h.assign("B", int64(5)) }, asItIs)},
	{name: "SaveMerged, unversioned column", code: `base := x; x.Note = "n"; gormlock.SaveMerged(tx, &x, &base)`, kind: merges, does: other, keeps: true,
		prepare: merged(func(c *cell) { c.h.assign("Note", "n") }, asItIs)},
	{name: "SaveMerged with Where", code: `base := x; x.A = 90; gormlock.SaveMerged(tx.Where("b < 1000"), &x, &base)`, kind: merges, keeps: true,
		prepare: merged(set, func(tx *gorm.DB) *gorm.DB { return tx.Where("b < 1000") })},
	{name: "SaveMerged, PreserveVersion", code: "base := x; x.A = 90; gormlock.SaveMerged(tx.Clauses(gormlock.PreserveVersion()), &x, &base)", kind: merges, only: movable,
		prepare: merged(set, func(tx *gorm.DB) *gorm.DB { return tx.Clauses(gormlock.PreserveVersion()) })},
}

// tag is what a client sends that has seen this row.
func tag(row any) (string, error) { return etag.Of(row) }

// currentTag is that of the row when the statement comes; that of another version where there is no row.
func (c *cell) currentTag() string {
	if c.row != nil {
		if tag, err := tag(c.row); err == nil {
			return tag
		}
	}
	return `"4"`
}

// matchers carry the version in a request.
var matchers = []form{
	{name: "IfMatch, Update", code: `tx.Clauses(IfMatch(current)).Model(&x).Update("a", 90)`, kind: expects,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Clauses(stand.IfMatch(c.currentTag())).Model(c.h.ptr).Update("a", written).Error
		})},
	{name: "IfMatch, a list", code: `tx.Clauses(IfMatch("0", current)).Model(&x).Update("a", 90)`, kind: expects,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Clauses(stand.IfMatch(`"77777", W/"1"`, c.currentTag())).Model(c.h.ptr).Update("a", written).Error
		})},
	{name: "IfMatch, Save", code: "x.A = 90; tx.Clauses(IfMatch(current)).Save(&x)", kind: expects,
		prepare: assigned(func(c *cell, tx *gorm.DB) error { return tx.Clauses(stand.IfMatch(c.currentTag())).Save(c.h.ptr).Error })},
	{name: "IfMatch, Delete", code: "tx.Clauses(IfMatch(current)).Delete(&x)", kind: expects, does: deletes,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Clauses(stand.IfMatch(c.currentTag())).Delete(c.h.ptr).Error
		})},
	{name: "IfMatch, bulk", code: `tx.Model(&T{}).Clauses(IfMatch(current)).Where(key).Update("a", 90)`, kind: expects,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Model(c.empty()).Clauses(stand.IfMatch(c.currentTag()), c.where()).Update("a", written).Error
		})},
	{name: "IfMatch, G.Update", code: `gorm.G[T](tx, IfMatch(current)).Where(key).Update(ctx, "a", 90)`, kind: expects,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return c.shape.generic.Update(tx, c.where(), "a", written, stand.IfMatch(c.currentTag()))
		})},
	{name: "IfMatch, Touch", code: "gormlock.Touch(tx.Clauses(IfMatch(current)), &x)", kind: expects, does: other,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return gormlock.Touch(tx.Clauses(stand.IfMatch(c.currentTag())), c.h.ptr)
		})},
	{name: "IfMatch of the struct", apart: true, code: `tag, err := etag.Of(&x); tx.Clauses(IfMatch(tag)).Model(&T{key}).Update("a", 90)`,
		prepare: func(c *cell) func(*gorm.DB) error {
			tag, err := tag(c.h.ptr)
			named := reflect.New(c.shape.model)
			c.shape.key(named.Elem(), c.n, c.foreign)
			return func(tx *gorm.DB) error {
				if err != nil {
					return err
				}
				return tx.Clauses(stand.IfMatch(tag)).Model(named.Interface()).Update("a", written).Error
			}
		}},
	{name: "IfMatch, any", code: `tx.Clauses(IfMatch("*")).Model(&x).Update("a", 90)`, kind: blind,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			return tx.Clauses(stand.IfMatch("*")).Model(c.h.ptr).Update("a", written).Error
		})},
}
