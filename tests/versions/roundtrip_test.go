package versions_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// plainOrder is an order whose lines have no version.
type plainOrder struct {
	ID    int64
	Title string
	Lines []plainLine `gorm:"foreignKey:OrderID"`
}

type plainLine struct {
	ID, OrderID int64
	Qty         int
}

// A version costs no round trip: not for one row, not for many, not for children.
func TestVersionsCostNoRoundTrip(t *testing.T) {
	t.Parallel()
	proxy, dsn := pgtest.Tap(t, pgtest.DSN(t))
	models := []any{&stand.Account{}, &stand.PlainAccount{}, &plainOrder{}, &plainLine{}, &stand.LinedOrder{}, &stand.LinedLine{}}
	db := stand.Versioned(t, models, pgtest.Through(dsn), pgtest.MaxConns(1))
	count := func(write func() error) int {
		n, _ := stand.RoundTrips(t, proxy, write)
		return n
	}
	var plain stand.Written[stand.PlainAccount]
	var versions stand.Written[stand.Account]
	stand.Must(t, db.Create(&plain.Rows).Error)
	stand.Must(t, db.Create(&versions.Rows).Error)
	plain.One, versions.One = &plain.Rows[0], &versions.Rows[0]
	ways := versions.Ways(db)
	for name, write := range plain.Ways(db) {
		if got, want := count(ways[name]), count(write); got != want || got == 0 {
			t.Errorf("%s: %d round trips, %d without a version", name, got, want)
		}
	}

	p := plainOrder{Lines: []plainLine{{}, {}}}
	v := stand.LinedOrder{Lines: []stand.LinedLine{{}, {}}}
	stand.Must(t, db.Create(&p).Error)
	stand.Must(t, db.Create(&v).Error)
	for name, full := range map[string]bool{"with children": false, "with all of the children": true} {
		tx := db.Session(&gorm.Session{FullSaveAssociations: full})
		got, want := count(func() error { return tx.Save(&v).Error }), count(func() error { return tx.Save(&p).Error })
		if got != want || got == 0 {
			t.Errorf("%s: %d round trips, %d without versions", name, got, want)
		}
	}

	// A conflict costs one read.
	stale := versions.Rows[1]
	stale.Version--
	conflict := func() error {
		stand.MustStale(t, db.Model(&stale).Update("balance", 2).Error)
		return nil
	}
	update := func() error { return db.Model(&plain.Rows[1]).Update("balance", 2).Error }
	stand.Equal(t, "round trips of a conflict", count(conflict), count(update)+1)
}
