package bench

import (
	"testing"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// plainAccount and account are one model, without a version and with one.
type plainAccount struct {
	ID      int64
	Balance int64
	Version int64
}

type account struct {
	ID      int64
	Balance int64
	Version int64 `gormlock:"version"`
}

// BenchmarkVersionedUpdate compares building an update of a versioned model with one of the same model without the tag:
// nothing is sent.
func BenchmarkVersionedUpdate(b *testing.B) {
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pgtest.SQLDB(b)}), &gorm.Config{
		DryRun: true, SkipDefaultTransaction: true, Logger: logger.Discard,
	})
	must(b, err)
	must(b, db.Use(gormlock.New()))
	plain, versioned := plainAccount{ID: 7, Balance: 100, Version: 70000}, account{ID: 7, Balance: 100, Version: 70000}
	alternate(b, 300, 1000,
		func() error { return db.Model(&plain).Update("balance", 90).Error },
		func() error { return db.Model(&versioned).Update("balance", 90).Error })
}

// BenchmarkUnused compares creating a row with the plugin installed and without: nothing of it is used.
func BenchmarkUnused(b *testing.B) {
	with := pgtest.Open(b, pgtest.Plugin(gormlock.New()), pgtest.Schema())
	without := pgtest.Open(b, pgtest.Schema())
	must(b, with.AutoMigrate(&plainAccount{}))
	must(b, without.AutoMigrate(&plainAccount{}))
	alternate(b, 60, 50,
		func() error { return without.Create(&plainAccount{}).Error },
		func() error { return with.Create(&plainAccount{}).Error })
}

// alternate runs both in turns, so many times a round, and reports the median of the ratios of the rounds and what ours
// allocates more.
func alternate(b *testing.B, rounds, times int, peer, ours func() error) {
	b.Helper()
	took := func(run func() error) float64 {
		began := time.Now()
		for range times {
			if err := run(); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(began).Seconds()
	}
	took(peer)
	took(ours)
	var ratios, peers, our []float64
	for round := range rounds {
		var p, o float64
		if round%2 == 0 {
			p = took(peer)
			o = took(ours)
		} else {
			o = took(ours)
			p = took(peer)
		}
		ratios, peers, our = append(ratios, o/p), append(peers, p), append(our, o)
	}
	for b.Loop() { //nolint:revive // the rounds are the loop
	}
	allocations := func(run func() error) float64 { // a pool that was emptied meanwhile counts once more
		least := testing.AllocsPerRun(100, func() { _ = run() })
		for range 4 {
			least = min(least, testing.AllocsPerRun(100, func() { _ = run() }))
		}
		return least
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(peers)/float64(times)*1e6, "peer-us")
	b.ReportMetric(median(our)/float64(times)*1e6, "ours-us")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(allocations(ours)-allocations(peer), "more-allocs")
}

// BenchmarkRoundTrips counts what locks add to a statement: in a transaction opened for it, in one that is open, and what
// a version adds to an update.
func BenchmarkRoundTrips(b *testing.B) {
	proxy, dsn := pgtest.Tap(b, pgtest.SchemaDSN(b))
	db := pgtest.Open(b, pgtest.Plugin(gormlock.New()), pgtest.Through(dsn), pgtest.MaxConns(1))
	must(b, db.AutoMigrate(&plainAccount{}, &account{}))
	plain, versioned := plainAccount{}, account{}
	must(b, db.Create(&plain).Error)
	must(b, db.Create(&versioned).Error)
	trips := func(run func() error) float64 {
		must(b, run()) // prepared statements are made once
		proxy.Reset()
		must(b, run())
		return float64(proxy.RoundTrips())
	}
	a, z, timeout := gormlock.Key("bench", "a"), gormlock.Key("bench", "z"), gormlock.Timeout(time.Minute)
	update := func(db *gorm.DB) error { return db.Model(&plain).Update("balance", 1).Error }
	nothing := func(*gorm.DB) error { return nil }
	for b.Loop() { //nolint:revive // a count is a count
	}
	b.ReportMetric(0, "ns/op")
	without := trips(func() error { return update(db) })
	b.ReportMetric(trips(func() error { return db.Model(&versioned).Update("balance", 1).Error })-without, "version")
	b.ReportMetric(trips(func() error { return update(db.Scopes(gormlock.WithXactLock(a))) })-without, "own-transaction")
	b.ReportMetric(trips(func() error {
		return gormlock.Transaction(db, nothing, gormlock.Locking(a, timeout), gormlock.Locking(z))
	})-trips(func() error { return db.Transaction(nothing) }), "Transaction")
	b.ReportMetric(trips(func() error {
		return db.Transaction(func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, []lockkey.Key{a, z}, timeout) })
	})-trips(func() error { return db.Transaction(nothing) }), "open-transaction")
}
