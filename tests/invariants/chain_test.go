package invariants

import (
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"pgregory.net/rapid"

	"github.com/gormlock/gormlock"
)

// link is what can be chained onto a session before its finisher.
type link struct {
	code  string
	blind bool // it takes the check away, as it says
	on    func(c *cell, tx *gorm.DB) *gorm.DB
}

var links = []link{
	{code: ".Session(&gorm.Session{})", on: func(_ *cell, tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{}) }},
	{code: ".Session(&gorm.Session{SkipHooks: true})", on: func(_ *cell, tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{SkipHooks: true}) }},
	{code: ".Session(&gorm.Session{FullSaveAssociations: true})", on: func(_ *cell, tx *gorm.DB) *gorm.DB { return full(tx) }},
	{code: ".Session(&gorm.Session{AllowGlobalUpdate: true})", on: func(_ *cell, tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{AllowGlobalUpdate: true}) }},
	{code: ".Session(&gorm.Session{QueryFields: true})", on: func(_ *cell, tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{QueryFields: true}) }},
	{code: ".Session(&gorm.Session{CreateBatchSize: 1})", on: func(_ *cell, tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{CreateBatchSize: 1}) }},
	{code: ".Unscoped()", on: func(_ *cell, tx *gorm.DB) *gorm.DB { return tx.Unscoped() }},
	{code: ".Where(key)", on: func(c *cell, tx *gorm.DB) *gorm.DB { return tx.Where(c.where()) }},
	{code: `.Where("b < 1000")`, on: func(_ *cell, tx *gorm.DB) *gorm.DB { return tx.Where("b < 1000") }},
	{code: `.Select("a")`, on: func(_ *cell, tx *gorm.DB) *gorm.DB { return tx.Select("a") }},
	{code: `.Select("*")`, on: func(_ *cell, tx *gorm.DB) *gorm.DB { return tx.Select("*") }},
	{code: `.Omit("b")`, on: func(_ *cell, tx *gorm.DB) *gorm.DB { return tx.Omit("b") }},
	{code: `.Omit("version")`, on: func(c *cell, tx *gorm.DB) *gorm.DB { return tx.Omit(c.shape.version.DBName) }},
	{code: ".Clauses(clause.Returning{})", on: func(_ *cell, tx *gorm.DB) *gorm.DB { return tx.Clauses(clause.Returning{}) }},
	{code: `.Clauses(clause.Returning{Columns: {b}})`, on: func(_ *cell, tx *gorm.DB) *gorm.DB { return tx.Clauses(returning("b")) }},
	{code: ".Clauses(clause.OnConflict{UpdateAll: true})", on: func(_ *cell, tx *gorm.DB) *gorm.DB { return tx.Clauses(clause.OnConflict{UpdateAll: true}) }},
	{code: ".Clauses(clause.OnConflict{DoNothing: true})", on: func(_ *cell, tx *gorm.DB) *gorm.DB { return tx.Clauses(clause.OnConflict{DoNothing: true}) }},
	{code: ".Clauses(gormlock.ExpectVersion(current))", blind: true, on: func(c *cell, tx *gorm.DB) *gorm.DB { return tx.Clauses(gormlock.ExpectVersion(c.current)) }},
	{code: ".Clauses(gormlock.IgnoreVersion())", blind: true, on: func(_ *cell, tx *gorm.DB) *gorm.DB { return tx.Clauses(gormlock.IgnoreVersion()) }},
	{code: ".Scopes(b > -1000)", on: func(_ *cell, tx *gorm.DB) *gorm.DB {
		return tx.Scopes(func(tx *gorm.DB) *gorm.DB { return tx.Where("b > -1000") })
	}},
	{code: ".Model(&x)", on: func(c *cell, tx *gorm.DB) *gorm.DB { return tx.Model(c.h.ptr) }},
	{code: ".Table(name)", on: func(c *cell, tx *gorm.DB) *gorm.DB { return tx.Table(c.shape.table) }},
	{code: ".Limit(1)", on: func(_ *cell, tx *gorm.DB) *gorm.DB { return tx.Limit(1) }},
}

// finisher ends a chain.
type finisher struct {
	code  string
	blind bool
	run   func(c *cell, tx *gorm.DB) *gorm.DB
}

var finishers = []finisher{
	{code: ".Save(&x)", run: func(c *cell, tx *gorm.DB) *gorm.DB { return tx.Save(c.h.ptr) }},
	{code: ".Updates(&x)", run: func(c *cell, tx *gorm.DB) *gorm.DB { return tx.Updates(c.h.ptr) }},
	{code: `.Model(&x).Update("a", 90)`, run: func(c *cell, tx *gorm.DB) *gorm.DB { return tx.Model(c.h.ptr).Update("a", written) }},
	{code: ".Model(&x).Updates(T{A: 90})", run: func(c *cell, tx *gorm.DB) *gorm.DB { return tx.Model(c.h.ptr).Updates(c.values()) }},
	{code: `.Model(&x).Updates(map[string]any{"a": expr})`, run: func(c *cell, tx *gorm.DB) *gorm.DB {
		return tx.Model(c.h.ptr).Updates(map[string]any{"a": gorm.Expr("b - b + 90")})
	}},
	{code: `.Model(&x).UpdateColumn("a", 90)`, run: func(c *cell, tx *gorm.DB) *gorm.DB { return tx.Model(c.h.ptr).UpdateColumn("a", written) }},
	{code: ".Save([]*T{&x})", run: func(c *cell, tx *gorm.DB) *gorm.DB { return tx.Save(c.pointers()) }},
	{code: ".Create(&x)", run: func(c *cell, tx *gorm.DB) *gorm.DB { return tx.Create(c.h.ptr) }},
	{code: ".Delete(&x)", run: func(c *cell, tx *gorm.DB) *gorm.DB { return tx.Delete(c.h.ptr) }},
	{code: `.Model(&T{}).Where(key).Update("a", 90)`, blind: true, run: func(c *cell, tx *gorm.DB) *gorm.DB {
		return tx.Model(c.empty()).Clauses(c.where()).Update("a", written)
	}},
}

// FuzzCallChain builds one call out of what GORM can chain, in any transaction, on a struct in any state. Whatever it
// does: an error leaves nothing, no other state of the row is overwritten than the one that was read, and no struct is at
// the version of a row that it does not equal.
func FuzzCallChain(f *testing.F) {
	w := newWorldIn(f)
	f.Fuzz(rapid.MakeFuzz(func(r *rapid.T) { chain(r, f, w) }))
}

// TestCallChains builds some on each run.
func TestCallChains(t *testing.T) {
	t.Parallel()
	w := newWorldIn(t)
	rapid.Check(t, func(r *rapid.T) { chain(r, t, w) })
}

func chain(r *rapid.T, t testing.TB, w *world) {
	t.Helper()
	var chained []link
	for range rapid.IntRange(0, 3).Draw(r, "links") {
		chained = append(chained, rapid.SampledFrom(links).Draw(r, "link"))
	}
	end := rapid.SampledFrom(finishers).Draw(r, "finisher")
	asked := end.blind || slices.ContainsFunc(chained, func(l link) bool { return l.blind })
	form := form{name: "chain", kind: free, does: other, plural: true, code: "tx"}
	if asked {
		form.kind = blind // nothing is compared, for so it was asked
	}
	for _, l := range chained {
		form.code += l.code
	}
	form.code += end.code
	form.prepare = func(c *cell) func(*gorm.DB) error {
		set(c)
		return func(tx *gorm.DB) error {
			for _, l := range chained {
				tx = l.on(c, tx)
			}
			return end.run(c, tx).Error
		}
	}
	p := parts{0, rapid.IntRange(0, len(spellings())-1).Draw(r, "model"), rapid.IntRange(0, len(states)-1).Draw(r, "state"),
		rapid.IntRange(0, len(scopes)-1).Draw(r, "transaction"), rapid.IntRange(0, len(configurations)-1).Draw(r, "configuration")}
	c := p.cell()
	if c.form, c.w = &form, w; !c.makesSense() {
		r.SkipNow()
	}
	c.run(t)
	for _, v := range c.found {
		if c.classOf(v.rule) == "" {
			r.Fatalf("%s: %s\n%s", v.rule, v.what, strings.TrimSpace(c.repro()))
		}
	}
}
