package bench

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/lockkey"
)

// counter counts round trips.
type counter struct {
	b     *testing.B
	proxy *wiretap.Proxy
	dsn   string
}

func newCounter(b *testing.B) *counter {
	b.Helper()
	proxy, dsn := pgtest.Tap(b, pgtest.SchemaDSN(b))
	return &counter{b, proxy, dsn}
}

// open opens GORM on one connection whose round trips are counted.
func (c *counter) open(opts ...pgtest.Option) *gorm.DB {
	return pgtest.Open(c.b, append(opts, pgtest.Through(c.dsn), pgtest.MaxConns(1))...)
}

// trips is how many round trips run takes after its statements are prepared.
func (c *counter) trips(run func() error) float64 {
	must(c.b, run())
	c.proxy.Reset()
	must(c.b, run())
	return float64(c.proxy.RoundTrips())
}

// BenchmarkRoundTrips counts what locks add to a statement, in a new transaction and in an open one, and what a version adds to an update.
func BenchmarkRoundTrips(b *testing.B) {
	c := newCounter(b)
	db := c.open(pgtest.Plugin(gormlock.New()))
	must(b, db.AutoMigrate(&plainAccount{}, &account{}))
	plain, versioned := plainAccount{}, account{}
	must(b, db.Create(&plain).Error)
	must(b, db.Create(&versioned).Error)
	keys := make([]lockkey.Key, 100)
	for i := range keys {
		keys[i] = gormlock.Key("bench", i)
	}
	timeout := gormlock.Timeout(time.Minute)
	update := func(db *gorm.DB) error { return db.Model(&plain).Update("balance", 1).Error }
	nothing := func(*gorm.DB) error { return nil }
	for b.Loop() { // one round: a count does not vary
	}
	b.ReportMetric(0, "ns/op")
	without := c.trips(func() error { return update(db) })
	b.ReportMetric(c.trips(func() error { return db.Model(&versioned).Update("balance", 1).Error })-without, "version")
	b.ReportMetric(c.trips(func() error { return update(db.Scopes(gormlock.WithXactLock(keys[0]))) })-without, "own-transaction")
	empty := c.trips(func() error { return db.Transaction(nothing) })
	b.ReportMetric(c.trips(func() error {
		return gormlock.Transaction(db, nothing, gormlock.Locking(keys[0], timeout), gormlock.Locking(keys[1]))
	})-empty, "Transaction")
	for unit, open := range map[string]struct {
		keys []lockkey.Key
		opts []gormlock.LockOption
	}{
		"open-1":           {keys[:1], nil},
		"open-1-timeout":   {keys[:1], []gormlock.LockOption{timeout}},
		"open-100":         {keys, nil},
		"open-100-timeout": {keys, []gormlock.LockOption{timeout}},
	} {
		b.ReportMetric(c.trips(func() error {
			return db.Transaction(func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, open.keys, open.opts...) })
		})-empty, unit)
	}
}
