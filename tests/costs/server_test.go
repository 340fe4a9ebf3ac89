package costs_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// P33: that a server is PostgreSQL is asked with the lock. The first lock of a connection costs no round trip more than
// those that follow.
func TestErrServer_costsNoRoundTrip(t *testing.T) {
	t.Parallel()
	body := func(tx *gorm.DB) error { return tx.Exec("select 1").Error }
	first := func(run func(db *gorm.DB) error) int {
		proxy, dsn := pgtest.Tap(t, pgtest.DSN(t))
		db := pgtest.Open(t, pgtest.Through(dsn), pgtest.MaxConns(1), pgtest.Plugin(gormlock.New()))
		if err := db.Exec("select 1").Error; err != nil { // it connects
			t.Fatal(err)
		}
		proxy.Reset()
		if err := run(db); err != nil {
			t.Fatal(err)
		}
		return proxy.RoundTrips()
	}
	key := pgtest.Key(t)
	without := first(func(db *gorm.DB) error { return gormlock.Transaction(db, body) })
	for name, opts := range map[string][]gormlock.LockOption{"waits": nil, "tries": {gormlock.Try()}} {
		if with := first(func(db *gorm.DB) error { return gormlock.Transaction(db, body, gormlock.Locking(key, opts...)) }); with != without {
			t.Errorf("Transaction, %s: %d round trips, without a lock %d", name, with, without)
		}
		if in := first(func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error {
				if err := gormlock.AcquireXactLock(tx, []lockkey.Key{key}, opts...); err != nil {
					return err
				}
				return body(tx)
			})
		}); in != without+1 {
			t.Errorf("AcquireXactLock, %s: %d round trips, without a lock %d", name, in, without)
		}
	}
}
