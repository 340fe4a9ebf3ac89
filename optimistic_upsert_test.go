package gormlock_test

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
)

type orderRow struct {
	ID         int64
	Title      string
	CustomerID *int64
	Customer   *customer
	Lines      []line   `gorm:"foreignKey:OrderID"`
	Tags       []*tag   `gorm:"many2many:order_tags"`
	Invoice    *invoice `gorm:"foreignKey:OrderID"`
	Version    int64    `gormlock:"version"`
}

type customer struct {
	ID      int64
	Name    string
	Version int64 `gormlock:"version"`
}

type line struct {
	ID      int64
	OrderID int64
	Qty     int
	Version int64 `gormlock:"version"`
}

type invoice struct {
	ID      int64
	OrderID int64
	Total   int
	Version uint64 `gormlock:"version"`
}

type tag struct {
	ID      int64
	Name    string
	Version int64 `gormlock:"version"`
}

var shop = []any{&customer{}, &tag{}, &orderRow{}, &line{}, &invoice{}}

func newOrder(t testing.TB, db *gorm.DB) *orderRow {
	t.Helper()
	o := &orderRow{
		Title: "a", Customer: &customer{Name: "c"}, Lines: []line{{Qty: 1}, {Qty: 2}},
		Tags: []*tag{{Name: "x"}, {Name: "y"}}, Invoice: &invoice{Total: 3},
	}
	must(t, db.Create(o).Error)
	return o
}

func load(t testing.TB, db *gorm.DB, id int64) *orderRow {
	t.Helper()
	var o orderRow
	must(t, db.Preload(clause.Associations).First(&o, id).Error)
	return &o
}

// V3: saving a parent touches children only where their foreign key changes.
func TestV3_Associations(t *testing.T) {
	t.Parallel()
	onBoth(t, shop, linkedAssociations)
}

func linkedAssociations(t *testing.T, db *gorm.DB) {
	o := newOrder(t, db)
	equal(t, "order", o.Version, 1)
	equal(t, "customer", o.Customer.Version, 1)
	equal(t, "line", o.Lines[1].Version, 1)
	equal(t, "tag", o.Tags[1].Version, 1)
	equal(t, "invoice", o.Invoice.Version, 1)

	a, b := load(t, db, o.ID), load(t, db, o.ID)
	a.Title = "b"
	must(t, db.Save(a).Error)
	equal(t, "order", a.Version, 2)
	for _, v := range []int64{a.Lines[0].Version, row[line](t, db, a.Lines[0].ID).Version, row[customer](t, db, a.Customer.ID).Version, row[tag](t, db, a.Tags[0].ID).Version} {
		equal(t, "child untouched", v, 1)
	}
	b.Title = "c"
	b.Lines = append(b.Lines, line{Qty: 9})
	before := *b
	mustStale(t, db.Save(b).Error)
	equal(t, "struct", b.Version, before.Version)
	var lines int64
	must(t, db.Model(&line{}).Count(&lines).Error)
	equal(t, "lines", lines, 2)

	// A child that another writer moved on: saving the parent leaves it alone, and memory stale.
	child := row[line](t, db, a.Lines[0].ID)
	must(t, db.Model(&child).Update("qty", 50).Error)
	a.Title = "d"
	must(t, db.Save(a).Error)
	equal(t, "never from RETURNING", a.Lines[0].Version, 1)
	a.Lines[0].Qty = 60
	mustStale(t, db.Save(&a.Lines[0]).Error)
	equal(t, "qty", row[line](t, db, child.ID).Qty, 50)

	// A child that moves to another parent bumps and is checked.
	other := newOrder(t, db)
	moved := row[line](t, db, child.ID)
	old := moved
	must(t, db.Model(other).Association("Lines").Append(&moved))
	equal(t, "moved", row[line](t, db, child.ID), line{ID: child.ID, OrderID: other.ID, Qty: 50, Version: 3})
	equal(t, "moved in memory", moved.Version, 3)
	third := newOrder(t, db)
	mustStale(t, db.Model(third).Association("Lines").Append(&old))
	equal(t, "not moved", row[line](t, db, child.ID).OrderID, other.ID)
}

func TestV4_FullSaveAssociations(t *testing.T) {
	t.Parallel()
	onBoth(t, shop, fullAssociations)
}

func fullAssociations(t *testing.T, db *gorm.DB) {
	o := newOrder(t, db)
	a, b := load(t, db, o.ID), load(t, db, o.ID)
	a.Lines[0].Qty = 10
	a.Customer.Name = "cc"
	must(t, db.Session(&gorm.Session{FullSaveAssociations: true}).Save(a).Error)
	equal(t, "line", a.Lines[0], row[line](t, db, a.Lines[0].ID))
	equal(t, "line", a.Lines[0].Version, 2)
	equal(t, "customer", a.Customer.Version, 2)
	// Only a child is stale: all of it is refused.
	b.Version = a.Version
	b.Customer.Version = 2
	b.Title = "never"
	mustStale(t, db.Session(&gorm.Session{FullSaveAssociations: true}).Save(b).Error)
	equal(t, "title", row[orderRow](t, db, o.ID).Title, "a")
	equal(t, "memory", b.Version, a.Version)
	equal(t, "memory", b.Customer.Version, 2)
	// A child that was not loaded.
	c := load(t, db, o.ID)
	c.Lines[0].Version = 0
	if err := db.Session(&gorm.Session{FullSaveAssociations: true}).Save(c).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
		t.Error(err)
	}
	// A child whose row is gone is not made again.
	d := load(t, db, o.ID)
	must(t, db.Delete(&line{}, d.Lines[0].ID).Error)
	equal(t, "gone", mustBeStale(t, db.Session(&gorm.Session{FullSaveAssociations: true}).Save(d).Error).Deleted, true)
	var lines int64
	must(t, db.Model(&line{}).Count(&lines).Error)
	equal(t, "lines", lines, 1)
}

type product struct {
	Code    string `gorm:"primaryKey"`
	Price   int
	Stock   int
	Version int64 `gormlock:"version"`
}

// V4, G6: explicit upserts.
func TestV4_Upsert(t *testing.T) {
	t.Parallel()
	onBoth(t, []any{&product{}}, upserts)
}

func upserts(t *testing.T, db *gorm.DB) {
	all := clause.OnConflict{UpdateAll: true}
	some := clause.OnConflict{Columns: []clause.Column{{Name: "code"}}, DoUpdates: clause.AssignmentColumns([]string{"price"})}
	p := product{Code: "a", Price: 1, Stock: 10}
	must(t, db.Clauses(all).Create(&p).Error)
	equal(t, "inserted", p.Version, 1)
	q := product{Code: "a", Price: 2, Stock: 20}
	must(t, db.Clauses(all).Create(&q).Error)
	equal(t, "new struct, all columns", q, row[product](t, db, "a"))
	equal(t, "new struct, all columns", q.Version, 2)
	r := product{Code: "a", Price: 3}
	must(t, db.Clauses(some).Create(&r).Error)
	equal(t, "new struct, some columns: not loaded", r.Version, 0)
	equal(t, "row", row[product](t, db, "a"), product{"a", 3, 20, 3})
	stale := q
	mustStale(t, db.Clauses(all).Create(&stale).Error)
	mustStale(t, db.Clauses(some).Create(&stale).Error)
	equal(t, "struct", stale, q)
	fresh := row[product](t, db, "a")
	fresh.Price = 4
	must(t, db.Clauses(some).Create(&fresh).Error)
	equal(t, "loaded", fresh, row[product](t, db, "a"))
	equal(t, "loaded", fresh.Version, 4)
	// A batch: loaded, new and inserted.
	batch := []*product{&fresh, {Code: "b", Price: 1}, {Code: "c", Price: 1}}
	must(t, db.Create(&product{Code: "b"}).Error)
	fresh.Price = 5
	must(t, db.Clauses(all).Create(&batch).Error)
	for _, p := range batch {
		equal(t, "batch", *p, row[product](t, db, p.Code))
	}
	equal(t, "batch", batch[1].Version, 2)
	must(t, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&product{Code: "b", Price: 99}).Error)
	equal(t, "do nothing", row[product](t, db, "b").Price, 1)
	nothing := product{Code: "b", Price: 99}
	must(t, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&nothing).Error)
	equal(t, "do nothing", nothing.Version, 0)
	// One stale element: nothing of the batch is stored.
	old := *batch[2]
	must(t, db.Model(batch[2]).Update("price", 7).Error)
	must(t, db.First(&fresh).Error)
	bad := []product{fresh, old, {Code: "d"}}
	mustStale(t, db.Save(&bad).Error)
	var n int64
	must(t, db.Model(&product{}).Count(&n).Error)
	equal(t, "rows", n, 3)
	equal(t, "struct", bad[2].Version, 0)
	// The row is gone: not made again.
	must(t, db.Delete(&product{}, "code = ?", "b").Error)
	equal(t, "gone", mustBeStale(t, db.Clauses(all).Create(batch[1]).Error).Deleted, true)
	must(t, db.Model(&product{}).Count(&n).Error)
	equal(t, "rows", n, 2)
}

// A row that a struct belongs to, or shares, is gone: it is not made again from the copy in memory.
func TestV4_NothingIsResurrected(t *testing.T) {
	t.Parallel()
	onBoth(t, shop, nothingIsResurrected)
}

func nothingIsResurrected(t *testing.T, db *gorm.DB) {
	o := newOrder(t, db)
	gone := *o.Tags[0]
	must(t, db.Exec("DELETE FROM order_tags").Error)
	must(t, db.Delete(&tag{}, gone.ID).Error)
	for _, session := range []gorm.Session{{}, {SkipDefaultTransaction: true}} {
		again := &orderRow{Title: "again", Tags: []*tag{o.Tags[1], &gone, {Name: "new"}}}
		e := mustBeStale(t, db.Session(&session).Create(again).Error)
		equal(t, "deleted", e.Deleted, true)
		equal(t, "new tag", again.Tags[2].ID, 0)
	}
	var tags int64
	must(t, db.Model(&tag{}).Count(&tags).Error)
	equal(t, "tags", tags, 1)
	mixed := &orderRow{Title: "mixed", Tags: []*tag{o.Tags[1], {Name: "p"}, {Name: "q"}}, Customer: o.Customer}
	must(t, db.Create(mixed).Error)
	equal(t, "customer", mixed.Customer.Version, 1)
	for _, v := range mixed.Tags {
		equal(t, "tag", *v, row[tag](t, db, v.ID))
	}
	must(t, db.Exec("UPDATE order_rows SET customer_id = NULL").Error)
	must(t, db.Delete(&customer{}, o.Customer.ID).Error)
	mixed.Title = "x"
	equal(t, "customer", mustBeStale(t, db.Save(mixed).Error).Deleted, true)
	equal(t, "title", row[orderRow](t, db, mixed.ID).Title, "mixed")
}

type registered struct {
	ID        int64
	Email     string    `gorm:"uniqueIndex"`
	Token     string    `gorm:"<-:create"`
	CreatedAt time.Time `gorm:"precision:6"`
	Version   int64     `gormlock:"version"`
}

// V4: a struct that takes its version from an update of all columns is the row, also in the columns that such an update
// leaves alone: its next Save would write them.
func TestV4_UpdateAllReturnsWhatItKeeps(t *testing.T) {
	t.Parallel()
	db := versioned(t, []any{&registered{}})
	first := registered{Email: "a", Token: "first"}
	must(t, db.Create(&first).Error)
	byKey := registered{ID: first.ID, Email: "b", Token: "second"}
	must(t, db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&byKey).Error)
	byEmail := registered{Email: "b", Token: "third"}
	must(t, db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "email"}}, UpdateAll: true}).Create(&byEmail).Error)
	for _, r := range []registered{byKey, byEmail} {
		equal(t, "token", r.Token, "first")
		equal(t, "created_at", r.CreatedAt.Equal(row[registered](t, db, first.ID).CreatedAt), true)
	}
	equal(t, "version", byEmail.Version, 3)
	must(t, db.Save(&byEmail).Error)
}

type member struct {
	ID      int64
	Email   string `gorm:"uniqueIndex"`
	Name    string
	Version int64 `gormlock:"version"`
}

// V4: a loaded struct whose upsert meets another row, by another unique column, does not overwrite it.
func TestV4_AnotherRowIsNotOverwritten(t *testing.T) {
	t.Parallel()
	onBoth(t, []any{&member{}}, anotherRowIsNotOverwritten)
}

func anotherRowIsNotOverwritten(t *testing.T, db *gorm.DB) {
	both := []member{{Email: "a", Name: "first"}, {Email: "b", Name: "second"}}
	must(t, db.Create(&both).Error)
	mine := both[0]
	mine.Email, mine.Name = "b", "never" // both rows are at version 1
	byEmail := clause.OnConflict{Columns: []clause.Column{{Name: "email"}}, DoUpdates: clause.AssignmentColumns([]string{"name"})}
	if err := db.Clauses(byEmail).Create(&mine).Error; err == nil {
		t.Error("the row of another key took the struct")
	}
	equal(t, "first", row[member](t, db, both[0].ID), both[0])
	equal(t, "second", row[member](t, db, both[1].ID), both[1])
	equal(t, "memory", mine.Version, 1)
}
