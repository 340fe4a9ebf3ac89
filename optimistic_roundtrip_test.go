package gormlock_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// plainAccount is account without a version, and plainOrder an order whose lines have none.
type plainAccount struct {
	ID      int64
	Balance int64
	Note    string
	Version int64
}

type plainOrder struct {
	ID    int64
	Title string
	Lines []plainLine `gorm:"foreignKey:OrderID"`
}

type plainLine struct {
	ID, OrderID int64
	Qty         int
}

type linedOrder struct {
	ID      int64
	Title   string
	Lines   []linedLine `gorm:"foreignKey:OrderID"`
	Version int64       `gormlock:"version"`
}

type linedLine struct {
	ID, OrderID int64
	Qty         int
	Version     int64 `gormlock:"version"`
}

// written is the same writes of a model with a version, and of one without.
type written[T any] struct {
	rows [4]T
	one  *T
}

func (w *written[T]) ways(db *gorm.DB) map[string]func() error {
	rows := w.rows[:]
	return map[string]func() error{
		"Create":             func() error { return db.Create(new(T)).Error },
		"Create of a slice":  func() error { s := make([]T, 3); return db.Create(&s).Error },
		"Update":             func() error { return db.Model(w.one).Update("balance", 1).Error },
		"Update, expression": func() error { return db.Model(w.one).Update("balance", gorm.Expr("balance + 1")).Error },
		"Save":               func() error { return db.Save(w.one).Error },
		"Update of a slice":  func() error { return db.Model(&rows).Update("balance", 1).Error },
		"Save of a slice":    func() error { return db.Save(&rows).Error },
		"bulk":               func() error { return db.Model(new(T)).Where("balance > 5").Update("note", "x").Error },
		"upsert":             func() error { return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(w.one).Error },
		"in a transaction": func() error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Model(w.one).Update("balance", 1).Error })
		},
		"without one": func() error {
			return db.Session(&gorm.Session{SkipDefaultTransaction: true}).Model(w.one).Update("balance", 1).Error
		},
	}
}

// A version costs no round trip: not for one row, not for many, not for children.
func TestVersionsCostNoRoundTrip(t *testing.T) {
	t.Parallel()
	proxy, dsn := pgtest.Tap(t, pgtest.SchemaDSN(t))
	plugin := gormlock.New()
	t.Cleanup(func() { _ = plugin.Close() })
	db := pgtest.Open(t, pgtest.Through(dsn), pgtest.MaxConns(1), pgtest.Plugin(plugin))
	must(t, db.AutoMigrate(&account{}, &plainAccount{}, &plainOrder{}, &plainLine{}, &linedOrder{}, &linedLine{}))

	count := func(write func() error) int {
		for range 2 { // pgx prepares a statement when it sees it first
			must(t, write())
		}
		before := proxy.RoundTrips()
		must(t, write())
		return proxy.RoundTrips() - before
	}
	var plain written[plainAccount]
	var versions written[account]
	must(t, db.Create(&plain.rows).Error)
	must(t, db.Create(&versions.rows).Error)
	plain.one, versions.one = &plain.rows[0], &versions.rows[0]
	ways := versions.ways(db)
	for name, write := range plain.ways(db) {
		if got, want := count(ways[name]), count(write); got != want || got == 0 {
			t.Errorf("%s: %d round trips, %d without a version", name, got, want)
		}
	}

	p := plainOrder{Lines: []plainLine{{}, {}}}
	v := linedOrder{Lines: []linedLine{{}, {}}}
	must(t, db.Create(&p).Error)
	must(t, db.Create(&v).Error)
	for name, full := range map[string]bool{"with children": false, "with all of the children": true} {
		tx := db.Session(&gorm.Session{FullSaveAssociations: full})
		got, want := count(func() error { return tx.Save(&v).Error }), count(func() error { return tx.Save(&p).Error })
		if got != want || got == 0 {
			t.Errorf("%s: %d round trips, %d without versions", name, got, want)
		}
	}

	// A conflict costs one read.
	stale := versions.rows[1]
	stale.Version--
	conflict := func() error {
		mustStale(t, db.Model(&stale).Update("balance", 2).Error)
		return nil
	}
	update := func() error { return db.Model(&plain.rows[1]).Update("balance", 2).Error }
	equal(t, "round trips of a conflict", count(conflict), count(update)+1)
}
