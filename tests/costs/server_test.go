package costs_test

import (
	"math"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

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

// TestServer_Allocations: on a connection of pgx it costs three allocations to see the end of an explicit transaction. A
// lock that travels with the BEGIN costs less than the statement that one would write, and LockRow little more than the query.
//
//nolint:paralleltest // allocations can only be counted while nobody else allocates
func TestServer_Allocations(t *testing.T) {
	plain, ours := pgtest.Open(t, pgtest.MaxConns(1)), pgtest.Open(t, pgtest.MaxConns(1), pgtest.Plugin(gormlock.New()))
	key := pgtest.Key(t)
	id, _ := key.Int64()
	body := func(tx *gorm.DB) error { return tx.Exec("SELECT 1").Error }
	count := func(run func() error) float64 {
		return testing.AllocsPerRun(100, func() {
			if err := run(); err != nil {
				t.Fatal(err)
			}
		})
	}
	for _, db := range []*gorm.DB{plain, ours} {
		if err := db.Exec("CREATE TEMP TABLE notes (id bigint PRIMARY KEY, title text, body text); INSERT INTO notes VALUES (1, '', '')").Error; err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		with, without func() error
		more          float64
	}{
		"LockRow": {
			func() error {
				return ours.Transaction(func(tx *gorm.DB) error { return gormlock.LockRow(tx, &note{ID: 1}) })
			},
			func() error {
				return plain.Transaction(func(tx *gorm.DB) error {
					return tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&note{}, 1).Error
				})
			}, 15, // one of them sees to it that the lock is in the text that is sent
		},
		"explicit": {func() error { return ours.Transaction(body) }, func() error { return plain.Transaction(body) }, 3},
		"locked": {
			func() error { return gormlock.Transaction(ours, body, gormlock.Locking(key)) },
			func() error {
				return plain.Transaction(func(tx *gorm.DB) error {
					if err := tx.Exec("SELECT pg_advisory_xact_lock(?)", id).Error; err != nil {
						return err
					}
					return body(tx)
				})
			}, 0,
		},
	} {
		with, without := math.Inf(1), 0.0
		for round := 0; round < 20 && (round < 3 || with > without+c.more); round++ { // a pool may be emptied meanwhile, on either side
			if w, o := count(c.with), count(c.without); w-o < with-without {
				with, without = w, o
			}
		}
		t.Logf("%s: %v allocations, plainly %v", name, with, without)
		if with > without+c.more+allocationSlack {
			t.Errorf("%s: %v allocations, plainly %v", name, with, without)
		}
	}
}
