package versions_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
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
	stand.Must(t, db.Create(o).Error)
	return o
}

func load(t testing.TB, db *gorm.DB, id int64) *orderRow {
	t.Helper()
	var o orderRow
	stand.Must(t, db.Preload(clause.Associations).First(&o, id).Error)
	return &o
}

// V3: saving a parent touches children only where their foreign key changes.
func TestV3_Associations(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, shop, linkedAssociations)
}

func linkedAssociations(t *testing.T, db *gorm.DB) {
	o := newOrder(t, db)
	stand.Equal(t, "order", o.Version, 1)
	stand.Equal(t, "customer", o.Customer.Version, 1)
	stand.Equal(t, "line", o.Lines[1].Version, 1)
	stand.Equal(t, "tag", o.Tags[1].Version, 1)
	stand.Equal(t, "invoice", o.Invoice.Version, 1)

	a, b := load(t, db, o.ID), load(t, db, o.ID)
	a.Title = "b"
	stand.Must(t, db.Save(a).Error)
	stand.Equal(t, "order", a.Version, 2)
	for _, v := range []int64{a.Lines[0].Version, stand.Row[line](t, db, a.Lines[0].ID).Version, stand.Row[customer](t, db, a.Customer.ID).Version, stand.Row[tag](t, db, a.Tags[0].ID).Version} {
		stand.Equal(t, "child untouched", v, 1)
	}
	b.Title = "c"
	b.Lines = append(b.Lines, line{Qty: 9})
	before := *b
	stand.MustStale(t, db.Save(b).Error)
	stand.Equal(t, "struct", b.Version, before.Version)
	var lines int64
	stand.Must(t, db.Model(&line{}).Count(&lines).Error)
	stand.Equal(t, "lines", lines, 2)

	// A child that another writer moved on: saving the parent leaves it alone, and memory stale.
	child := stand.Row[line](t, db, a.Lines[0].ID)
	stand.Must(t, db.Model(&child).Update("qty", 50).Error)
	a.Title = "d"
	stand.Must(t, db.Save(a).Error)
	stand.Equal(t, "never from RETURNING", a.Lines[0].Version, 1)
	a.Lines[0].Qty = 60
	stand.MustStale(t, db.Save(&a.Lines[0]).Error)
	stand.Equal(t, "qty", stand.Row[line](t, db, child.ID).Qty, 50)

	// A child that moves to another parent bumps and is checked.
	other := newOrder(t, db)
	moved := stand.Row[line](t, db, child.ID)
	old := moved
	stand.Must(t, db.Model(other).Association("Lines").Append(&moved))
	stand.Equal(t, "moved", stand.Row[line](t, db, child.ID), line{ID: child.ID, OrderID: other.ID, Qty: 50, Version: 3})
	stand.Equal(t, "moved in memory", moved.Version, 3)
	third := newOrder(t, db)
	stand.MustStale(t, db.Model(third).Association("Lines").Append(&old))
	stand.Equal(t, "not moved", stand.Row[line](t, db, child.ID).OrderID, other.ID)
}

func TestV4_FullSaveAssociations(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, shop, fullAssociations)
}

func fullAssociations(t *testing.T, db *gorm.DB) {
	o := newOrder(t, db)
	a, b := load(t, db, o.ID), load(t, db, o.ID)
	a.Lines[0].Qty = 10
	a.Customer.Name = "cc"
	stand.Must(t, db.Session(&gorm.Session{FullSaveAssociations: true}).Save(a).Error)
	stand.Equal(t, "line", a.Lines[0], stand.Row[line](t, db, a.Lines[0].ID))
	stand.Equal(t, "line", a.Lines[0].Version, 2)
	stand.Equal(t, "customer", a.Customer.Version, 2)
	// Only a child is stale: all of it is refused.
	b.Version = a.Version
	b.Customer.Version = 2
	b.Title = "never"
	stand.MustStale(t, db.Session(&gorm.Session{FullSaveAssociations: true}).Save(b).Error)
	stand.Equal(t, "title", stand.Row[orderRow](t, db, o.ID).Title, "a")
	stand.Equal(t, "memory", b.Version, a.Version)
	stand.Equal(t, "memory", b.Customer.Version, 2)
	// A child that was not loaded.
	c := load(t, db, o.ID)
	c.Lines[0].Version = 0
	if err := db.Session(&gorm.Session{FullSaveAssociations: true}).Save(c).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
		t.Error(err)
	}
	// A child whose row is gone is not made again.
	d := load(t, db, o.ID)
	stand.Must(t, db.Delete(&line{}, d.Lines[0].ID).Error)
	stand.Equal(t, "gone", stand.MustBeStale(t, db.Session(&gorm.Session{FullSaveAssociations: true}).Save(d).Error).Deleted, true)
	var lines int64
	stand.Must(t, db.Model(&line{}).Count(&lines).Error)
	stand.Equal(t, "lines", lines, 1)
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
	stand.OnEachAndMySQL(t, []any{&product{}}, upserts)
}

func upserts(t *testing.T, db *gorm.DB) {
	all := clause.OnConflict{UpdateAll: true}
	some := clause.OnConflict{Columns: []clause.Column{{Name: "code"}}, DoUpdates: clause.AssignmentColumns([]string{"price"})}
	p := product{Code: "a", Price: 1, Stock: 10}
	stand.Must(t, db.Clauses(all).Create(&p).Error)
	stand.Equal(t, "inserted", p.Version, 1)
	q := product{Code: "a", Price: 2, Stock: 20}
	stand.Must(t, db.Clauses(all).Create(&q).Error)
	stand.Equal(t, "new struct, all columns", q, stand.Row[product](t, db, "a"))
	stand.Equal(t, "new struct, all columns", q.Version, 2)
	r := product{Code: "a", Price: 3}
	stand.Must(t, db.Clauses(some).Create(&r).Error)
	stand.Equal(t, "row", stand.Row[product](t, db, "a"), product{"a", 3, 20, 3})
	stand.Equal(t, "new struct, some columns: it is the row", r, product{"a", 3, 20, 3})
	stale := q
	stand.MustStale(t, db.Clauses(all).Create(&stale).Error)
	stand.MustStale(t, db.Clauses(some).Create(&stale).Error)
	stand.Equal(t, "struct", stale, q)
	fresh := stand.Row[product](t, db, "a")
	fresh.Price = 4
	stand.Must(t, db.Clauses(some).Create(&fresh).Error)
	stand.Equal(t, "loaded", fresh, stand.Row[product](t, db, "a"))
	stand.Equal(t, "loaded", fresh.Version, 4)
	// A batch: loaded, new and inserted.
	batch := []*product{&fresh, {Code: "b", Price: 1}, {Code: "c", Price: 1}}
	stand.Must(t, db.Create(&product{Code: "b"}).Error)
	fresh.Price = 5
	stand.Must(t, db.Clauses(all).Create(&batch).Error)
	for _, p := range batch {
		stand.Equal(t, "batch", *p, stand.Row[product](t, db, p.Code))
	}
	stand.Equal(t, "batch", batch[1].Version, 2)
	stand.Must(t, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&product{Code: "b", Price: 99}).Error)
	stand.Equal(t, "do nothing", stand.Row[product](t, db, "b").Price, 1)
	nothing := product{Code: "b", Price: 99}
	stand.Must(t, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&nothing).Error)
	stand.Equal(t, "do nothing: it has a version", nothing.Version > 0, false)
	// One stale element: nothing of the batch is stored.
	old := *batch[2]
	stand.Must(t, db.Model(batch[2]).Update("price", 7).Error)
	stand.Must(t, db.First(&fresh).Error)
	bad := []product{fresh, old, {Code: "d"}}
	stand.MustStale(t, db.Save(&bad).Error)
	var n int64
	stand.Must(t, db.Model(&product{}).Count(&n).Error)
	stand.Equal(t, "rows", n, 3)
	stand.Equal(t, "struct", bad[2].Version, 0)
	// The row is gone: not made again.
	stand.Must(t, db.Delete(&product{}, "code = ?", "b").Error)
	stand.Equal(t, "gone", stand.MustBeStale(t, db.Clauses(all).Create(batch[1]).Error).Deleted, true)
	stand.Must(t, db.Model(&product{}).Count(&n).Error)
	stand.Equal(t, "rows", n, 2)
}

// A row that a struct belongs to, or shares, is gone: it is not made again from the copy in memory.
func TestV4_NothingIsResurrected(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, shop, nothingIsResurrected)
}

func nothingIsResurrected(t *testing.T, db *gorm.DB) {
	o := newOrder(t, db)
	gone := *o.Tags[0]
	stand.Must(t, db.Exec("DELETE FROM order_tags").Error)
	stand.Must(t, db.Delete(&tag{}, gone.ID).Error)
	for _, session := range []gorm.Session{{}, {SkipDefaultTransaction: true}} {
		again := &orderRow{Title: "again", Tags: []*tag{o.Tags[1], &gone, {Name: "new"}}}
		e := stand.MustBeStale(t, db.Session(&session).Create(again).Error)
		stand.Equal(t, "deleted", e.Deleted, true)
		stand.Equal(t, "new tag", again.Tags[2].ID, 0)
	}
	var tags int64
	stand.Must(t, db.Model(&tag{}).Count(&tags).Error)
	stand.Equal(t, "tags", tags, 1)
	mixed := &orderRow{Title: "mixed", Tags: []*tag{o.Tags[1], {Name: "p"}, {Name: "q"}}, Customer: o.Customer}
	stand.Must(t, db.Create(mixed).Error)
	stand.Equal(t, "customer", mixed.Customer.Version, 1)
	for _, v := range mixed.Tags {
		stand.Equal(t, "tag", *v, stand.Row[tag](t, db, v.ID))
	}
	stand.Must(t, db.Exec("UPDATE order_rows SET customer_id = NULL").Error)
	stand.Must(t, db.Delete(&customer{}, o.Customer.ID).Error)
	mixed.Title = "x"
	stand.Equal(t, "customer", stand.MustBeStale(t, db.Save(mixed).Error).Deleted, true)
	stand.Equal(t, "title", stand.Row[orderRow](t, db, mixed.ID).Title, "mixed")
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
	db, first := stand.Stored(t, registered{Email: "a", Token: "first"})
	byKey := registered{ID: first.ID, Email: "b", Token: "second"}
	stand.Must(t, db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&byKey).Error)
	byEmail := registered{Email: "b", Token: "third"}
	stand.Must(t, db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "email"}}, UpdateAll: true}).Create(&byEmail).Error)
	for _, r := range []registered{byKey, byEmail} {
		stand.Equal(t, "token", r.Token, "first")
		stand.Equal(t, "created_at", r.CreatedAt.Equal(stand.Row[registered](t, db, first.ID).CreatedAt), true)
	}
	stand.Equal(t, "version", byEmail.Version, 3)
	stand.Must(t, db.Save(&byEmail).Error)
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
	stand.OnEachAndMySQL(t, []any{&member{}}, anotherRowIsNotOverwritten)
}

func anotherRowIsNotOverwritten(t *testing.T, db *gorm.DB) {
	both := []member{{Email: "a", Name: "first"}, {Email: "b", Name: "second"}}
	stand.Must(t, db.Create(&both).Error)
	mine := both[0]
	mine.Email, mine.Name = "b", "never" // both rows are at version 1
	byEmail := clause.OnConflict{Columns: []clause.Column{{Name: "email"}}, DoUpdates: clause.AssignmentColumns([]string{"name"})}
	if err := db.Clauses(byEmail).Create(&mine).Error; err == nil {
		t.Error("the row of another key took the struct")
	}
	stand.Equal(t, "first", stand.Row[member](t, db, both[0].ID), both[0])
	stand.Equal(t, "second", stand.Row[member](t, db, both[1].ID), both[1])
	stand.Equal(t, "memory", mine.Version, 1)
}

// A version in a map is the one expected. An upsert of maps cannot compare it, so it says so.
func TestV23_UpsertOfMapsThatNameAVersion(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&tag{}}, func(t *testing.T, db *gorm.DB) {
		row := stand.Made(t, db, tag{Name: "a"})
		tags := func() *gorm.DB { return db.Model(&tag{}) }
		all, named := clause.OnConflict{UpdateAll: true}, clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"name"})}
		for name, write := range map[string]func() error{
			"column": func() error {
				return tags().Clauses(all).Create(map[string]any{"id": row.ID, "name": "x", "version": 1}).Error
			},
			"field": func() error {
				return tags().Clauses(named).Create(&map[string]any{"ID": row.ID, "Name": "x", "Version": 7}).Error
			},
			"one of two": func() error {
				return tags().Clauses(all).Create([]map[string]any{{"id": 100, "name": "x"}, {"id": row.ID, "name": "x", "version": 1}}).Error
			},
		} {
			if err := write(); err == nil || !strings.Contains(err.Error(), "leave it out") {
				t.Errorf("%s: %v", name, err)
			}
			stand.Equal(t, name, stand.Row[tag](t, db, row.ID), row)
		}
		stand.MustDo(t, tags().Clauses(named).Create(map[string]any{"id": row.ID, "name": "b"}))
		stand.MustDo(t, tags().Clauses(clause.OnConflict{DoNothing: true}).Create(map[string]any{"id": row.ID, "name": "c", "version": 1}))
		stand.Equal(t, "without a version", stand.Row[tag](t, db, row.ID), tag{ID: row.ID, Name: "b", Version: 2})
		stand.MustDo(t, tags().Clauses(named, gormlock.IgnoreVersion()).Create(map[string]any{"id": row.ID, "name": "d", "version": 1}))
		stand.Equal(t, "ignored", stand.Row[tag](t, db, row.ID), tag{ID: row.ID, Name: "d", Version: 3})
	})
}

// Whoever ignores versions writes over other writers, and does not make rows anew that they have deleted.
func TestIgnoreVersion_ofRowsThatAreGone(t *testing.T) {
	t.Parallel()
	models := []any{&stand.Account{}, &stand.TimedTask{}, &stand.RailsTask{}, &stand.LinedOrder{}, &stand.LinedLine{}}
	stand.OnBoth(t, models, func(t *testing.T, db *gorm.DB) {
		ignore := func() *gorm.DB { return db.Clauses(gormlock.IgnoreVersion()) }
		mustBeGone := func(what string, err error, n int64) {
			t.Helper()
			var stale *gormlock.StaleError
			if !errors.As(err, &stale) || !stale.Deleted {
				t.Errorf("%s: %v", what, err)
			}
			stand.Equal(t, what+", rows", n, 1)
		}
		accounts := []stand.Account{{Balance: 1}, {Balance: 2}}
		stand.Must(t, db.Create(&accounts).Error)
		stand.Must(t, db.Exec("DELETE FROM accounts WHERE id = 1").Error)
		stand.Must(t, db.Exec("UPDATE accounts SET version = 7").Error)
		accounts[1].Balance = 20
		mustBeGone("accounts", ignore().Save(&accounts).Error, countOf[stand.Account](t, db))
		stand.Equal(t, "balance", stand.Row[stand.Account](t, db, 2).Balance, 2)
		rest := accounts[1:]
		stand.Must(t, ignore().Save(&rest).Error)
		stand.Equal(t, "balance", stand.Row[stand.Account](t, db, 2).Balance, 20)
		stand.Equal(t, "version", stand.Row[stand.Account](t, db, 2).Version, 8)
		made := []stand.Account{rest[0], {Balance: 3}, {ID: 77, Balance: 4}} // the last two were never read
		stand.Must(t, ignore().Save(&made).Error)
		stand.Equal(t, "accounts", countOf[stand.Account](t, db), 3)
		stand.Equal(t, "version", stand.Row[stand.Account](t, db, 77).Version, 1)

		tasks := []stand.TimedTask{{State: "a"}, {State: "b"}}
		stand.Must(t, db.Create(&tasks).Error)
		stand.Must(t, db.Exec("DELETE FROM timed_tasks WHERE id = 1").Error)
		mustBeGone("times", ignore().Save(&tasks).Error, countOf[stand.TimedTask](t, db))

		order := stand.LinedOrder{Title: "x", Lines: []stand.LinedLine{{Qty: 1}, {Qty: 2}}}
		stand.Must(t, db.Create(&order).Error)
		orders := []stand.LinedOrder{order}
		stand.Must(t, db.Exec("DELETE FROM lined_lines").Error)
		stand.Must(t, db.Exec("DELETE FROM lined_orders").Error)
		if err := ignore().Session(&gorm.Session{FullSaveAssociations: true}).Save(&orders).Error; err == nil {
			t.Error("an order was made anew")
		}
		stand.Equal(t, "orders", countOf[stand.LinedOrder](t, db), 0)
		stand.Equal(t, "lines", countOf[stand.LinedLine](t, db), 0)
	})
}

func countOf[T any](t *testing.T, db *gorm.DB) (n int64) {
	t.Helper()
	stand.Must(t, db.Model(new(T)).Count(&n).Error)
	return n
}
