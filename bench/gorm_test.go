package bench

import (
	"math"
	"runtime"
	"slices"
	"testing"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/optimisticlock"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
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

// BenchmarkVersionedUpdate compares building an update of a versioned model with building one of the same model without the tag. Nothing is sent.
func BenchmarkVersionedUpdate(b *testing.B) {
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pgtest.SQLDB(b)}), &gorm.Config{
		DryRun: true, SkipDefaultTransaction: true, Logger: logger.Discard,
	})
	must(b, err)
	must(b, db.Use(gormlock.New()))
	plain, versioned := plainAccount{ID: 7, Balance: 100, Version: 70000}, account{ID: 7, Balance: 100, Version: 70000}
	without := func() error { return db.Model(&plain).Update("balance", 90).Error }
	with := func() error { return db.Model(&versioned).Update("balance", 90).Error }
	peers, ours := alternate(b, 300, 1000, without, with)
	for b.Loop() { // the rounds are the loop
	}
	reportTimes(b, peers, ours)
	b.ReportMetric(moreAllocations(without, with), "more-allocs")
}

// guardedAccount is the model for gorm.io/plugin/optimisticlock.
type guardedAccount struct {
	ID      int64
	Balance int64
	Version optimisticlock.Version
}

// BenchmarkVersionedUpdateSent compares a versioned update on a server with one by optimisticlock. There the caller checks whether a row was
// changed, and counts the version, because the plugin does not update the struct.
func BenchmarkVersionedUpdateSent(b *testing.B) {
	with := pgtest.Open(b, pgtest.Plugin(gormlock.New()), pgtest.Schema())
	without := pgtest.Open(b, pgtest.Schema())
	theirs, versioned := guardedAccount{}, account{}
	must(b, without.AutoMigrate(&theirs))
	must(b, with.AutoMigrate(&versioned))
	must(b, without.Create(&theirs).Error)
	must(b, with.Create(&versioned).Error)
	peers, ours := alternate(b, 100, 50,
		func() error {
			result := without.Model(&theirs).Update("balance", 90)
			if result.Error == nil && result.RowsAffected != 1 {
				return gormlock.ErrStale
			}
			theirs.Version.Int64++
			return result.Error
		},
		func() error { return with.Model(&versioned).Update("balance", 90).Error })
	for b.Loop() { // the rounds are the loop
	}
	reportTimes(b, peers, ours)
}

// BenchmarkVersionedUpdatePlain compares a versioned update on a server with one of the same model without the tag.
func BenchmarkVersionedUpdatePlain(b *testing.B) {
	db, _ := open(b, 1)
	plain, versioned := plainAccount{}, account{}
	must(b, db.AutoMigrate(&plain, &versioned))
	must(b, db.Create(&plain).Error)
	must(b, db.Create(&versioned).Error)
	peers, ours := alternate(b, 100, 50,
		func() error { return db.Model(&plain).Update("balance", 90).Error },
		func() error { return db.Model(&versioned).Update("balance", 90).Error })
	for b.Loop() { // the rounds are the loop
	}
	reportTimes(b, peers, ours)
}

// unused are statements that use nothing of the plugin.
var unused = []struct {
	name string
	run  func(db *gorm.DB) error
}{
	{"create", func(db *gorm.DB) error { return db.Create(&plainAccount{}).Error }},
	{"save", func(db *gorm.DB) error { return db.Save(&plainAccount{ID: 1, Balance: 2}).Error }},
	{"update", func(db *gorm.DB) error { return db.Model(&plainAccount{ID: 1}).Update("balance", 3).Error }},
	{"find", func(db *gorm.DB) error { return db.Find(&[]plainAccount{}, 1).Error }},
	{"delete", func(db *gorm.DB) error { return db.Delete(&plainAccount{}, -1).Error }},
}

// BenchmarkUnused compares statements with and without the plugin that use nothing of it: what each allocates, how many round trips it makes, and
// for some how long it takes.
func BenchmarkUnused(b *testing.B) {
	with := pgtest.Open(b, pgtest.Plugin(gormlock.New()), pgtest.Schema())
	without := pgtest.Open(b, pgtest.Schema())
	counter := newCounter(b)
	var allocations, roundTrips []float64
	for _, db := range []*gorm.DB{with, without, counter.open()} {
		must(b, db.AutoMigrate(&plainAccount{}))
		must(b, db.Create(&plainAccount{}).Error)
	}
	for b.Loop() { // the rounds are the loop
	}
	b.ReportMetric(0, "ns/op")
	for _, u := range unused {
		plainly := func() error { return u.run(without) }
		installed := func() error { return u.run(with) }
		if u.name == "create" || u.name == "find" {
			peers, ours := alternate(b, 500, 20, plainly, installed)
			reportRatios(b, u.name, ratios(ours, peers))
		}
		allocations = append(allocations, moreAllocations(plainly, installed))
		plugin, plain := counter.open(pgtest.Plugin(gormlock.New())), counter.open()
		roundTrips = append(roundTrips, counter.trips(func() error { return u.run(plugin) })-counter.trips(func() error { return u.run(plain) }))
		b.ReportMetric(allocations[len(allocations)-1], u.name+"-more-allocs")
		b.ReportMetric(roundTrips[len(roundTrips)-1], u.name+"-more-trips")
	}
	b.ReportMetric(slices.Max(allocations), "most-more-allocs")
	b.ReportMetric(slices.Max(roundTrips), "most-more-trips")
}

func reportTimes(b *testing.B, peers, ours []float64) {
	b.Helper()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(peers)*1e6, "peer-us")
	b.ReportMetric(median(ours)*1e6, "ours-us")
	reportRatios(b, "ratio", ratios(ours, peers))
}

// moreAllocations is how many more whole allocations ours makes than the peer: the median of means. The driver takes a new buffer every other time,
// and after a pool was emptied one more is counted, on either side.
func moreAllocations(peer, ours func() error) float64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const rounds, runs = 21, 50
	mean := func(run func() error) float64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			_ = run()
		}
		runtime.ReadMemStats(&after)
		return float64(after.Mallocs-before.Mallocs) / runs
	}
	more := make([]float64, rounds)
	for i := range more {
		more[i] = mean(ours) - mean(peer)
	}
	return math.Round(median(more)) + 0 // not -0
}
