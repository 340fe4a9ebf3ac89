package gormlock_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
)

type fencedBalance struct {
	ID      int64
	Balance int64
	Note    string
	Fence   int64 `gormlock:"fence"`
}

type fencedVersion struct {
	ID      int64
	Balance int64
	Note    string
	Fence   int64 `gormlock:"fence"`
	Version int64 `gormlock:"version"`
}

// A fence costs no round trip, beside a version or not; what changes no row costs one read, which says why.
func TestFencesCostNoRoundTrip(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	proxy, tapped := pgtest.Tap(t, dsn)
	plugin := gormlock.New()
	t.Cleanup(func() { _ = plugin.Close() })
	db := pgtest.Open(t, pgtest.Through(tapped), pgtest.MaxConns(1), pgtest.Plugin(plugin))
	must(t, db.AutoMigrate(&plainAccount{}, &fencedBalance{}, &fencedVersion{}))
	pool, err := db.DB()
	must(t, err)
	must(t, fence.Migrate(t.Context(), pool))
	token := issue(t, db, "a")
	tx := with(db, token)
	count := func(write func() error) int {
		for range 2 { // pgx prepares a statement when it sees it first
			must(t, write())
		}
		before := proxy.RoundTrips()
		must(t, write())
		return proxy.RoundTrips() - before
	}

	var plain written[plainAccount]
	var fences written[fencedBalance]
	var both written[fencedVersion]
	must(t, db.Create(&plain.rows).Error)
	must(t, tx.Create(&fences.rows).Error)
	must(t, tx.Create(&both.rows).Error)
	must(t, db.Create(&plainAccount{ID: 1000}).Error) // to be claimed
	must(t, tx.Create(&fencedBalance{ID: 1000}).Error)
	must(t, tx.Create(&fencedVersion{ID: 1000}).Error)
	plain.one, fences.one, both.one = &plain.rows[0], &fences.rows[0], &both.rows[0]
	plainWays, fencedWays, bothWays := plain.ways(db), fences.ways(tx), both.ways(tx)
	plainWays["claim"] = func() error { return claimOne[plainAccount](db) }
	fencedWays["claim"] = func() error { return claimOne[fencedBalance](tx) }
	bothWays["claim"] = func() error { return claimOne[fencedVersion](tx) }
	for name, write := range plainWays {
		want := count(write)
		if name == "bulk" {
			want++ // no row is changed, and one read says that no later token is the reason
		}
		if got := count(fencedWays[name]); got != want || got == 0 {
			t.Errorf("%s: %d round trips, %d without a fence", name, got, want)
		}
		if got := count(bothWays[name]); got != want || got == 0 {
			t.Errorf("%s: %d round trips with a version too, %d without", name, got, want)
		}
	}

	update := count(func() error { return db.Model(&plain.rows[1]).Update("balance", 2).Error })
	stale := both.rows[1]
	stale.Version--
	equal(t, "a stale version", count(func() error {
		mustStale(t, tx.Model(&stale).Update("balance", 2).Error)
		return nil
	}), update+1)
	issue(t, db, "a")
	for name, write := range map[string]func() error{
		"update": func() error { return tx.Model(&fences.rows[1]).Update("balance", 2).Error },
		"both":   func() error { return tx.Model(&both.rows[1]).Update("balance", 2).Error },
		"bulk":   func() error { return tx.Model(&fencedBalance{}).Where("id > 0").Update("balance", 2).Error },
	} {
		equal(t, "a refusal: "+name, count(func() error { mustFenced(t, write()); return nil }), update+1)
	}
	missing := proxy.RoundTrips()
	mustMissToken(t, db.Model(&fences.rows[1]).Update("balance", 2).Error)
	mustMissToken(t, db.Create(&fencedBalance{}).Error)
	mustMissToken(t, db.Transaction(func(tx *gorm.DB) error { return tx.Clauses(all).Create(&fencedBalance{}).Error }))
	equal(t, "without a token", proxy.RoundTrips()-missing, 2) // BEGIN and ROLLBACK of the transaction
}

func claimOne[T any](tx *gorm.DB) error {
	rows, err := gormlock.Claim[T](tx, 1, map[string]any{"balance": 3}, func(q *gorm.DB) *gorm.DB { return q.Order("id DESC") })
	if err == nil && len(rows) != 1 {
		return gorm.ErrRecordNotFound
	}
	return err
}
