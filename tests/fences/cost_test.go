package fences_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
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
	proxy, dsn := pgtest.Tap(t, pgtest.DSN(t))
	models := []any{&stand.PlainAccount{}, &fencedBalance{}, &fencedVersion{}}
	db := stand.Fenced(t, models, pgtest.Through(dsn), pgtest.MaxConns(1))
	token := stand.Issue(t, db, "a")
	tx := stand.With(db, token)
	count := func(write func() error) int {
		n, _ := stand.RoundTrips(t, proxy, write)
		return n
	}

	var plain stand.Written[stand.PlainAccount]
	var fences stand.Written[fencedBalance]
	var both stand.Written[fencedVersion]
	stand.Must(t, db.Create(&plain.Rows).Error)
	stand.Must(t, tx.Create(&fences.Rows).Error)
	stand.Must(t, tx.Create(&both.Rows).Error)
	stand.Must(t, db.Create(&stand.PlainAccount{ID: 1000}).Error) // to be claimed
	stand.Must(t, tx.Create(&fencedBalance{ID: 1000}).Error)
	stand.Must(t, tx.Create(&fencedVersion{ID: 1000}).Error)
	plain.One, fences.One, both.One = &plain.Rows[0], &fences.Rows[0], &both.Rows[0]
	plainWays, fencedWays, bothWays := plain.Ways(db), fences.Ways(tx), both.Ways(tx)
	plainWays["claim"] = func() error { return claimOne[stand.PlainAccount](db) }
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

	update := count(func() error { return db.Model(&plain.Rows[1]).Update("balance", 2).Error })
	stale := both.Rows[1]
	stale.Version--
	stand.Equal(t, "a stale version", count(func() error {
		stand.MustStale(t, tx.Model(&stale).Update("balance", 2).Error)
		return nil
	}), update+1)
	stand.Issue(t, db, "a")
	for name, write := range map[string]func() error{
		"update": func() error { return tx.Model(&fences.Rows[1]).Update("balance", 2).Error },
		"both":   func() error { return tx.Model(&both.Rows[1]).Update("balance", 2).Error },
		"bulk":   func() error { return tx.Model(&fencedBalance{}).Where("id > 0").Update("balance", 2).Error },
	} {
		stand.Equal(t, "a refusal: "+name, count(func() error { mustFenced(t, write()); return nil }), update+1)
	}
	missing := proxy.RoundTrips()
	mustMissToken(t, db.Model(&fences.Rows[1]).Update("balance", 2).Error)
	mustMissToken(t, db.Create(&fencedBalance{}).Error)
	mustMissToken(t, db.Transaction(func(tx *gorm.DB) error { return tx.Clauses(stand.UpdateAll).Create(&fencedBalance{}).Error }))
	stand.Equal(t, "without a token", proxy.RoundTrips()-missing, 2) // BEGIN and ROLLBACK of the transaction
}

func claimOne[T any](tx *gorm.DB) error {
	rows, err := gormlock.Claim[T](tx, 1, map[string]any{"balance": 3}, func(q *gorm.DB) *gorm.DB { return q.Order("id DESC") })
	if err == nil && len(rows) != 1 {
		return gorm.ErrRecordNotFound
	}
	return err
}
