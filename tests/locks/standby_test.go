package locks_test

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// TestP14_Standby: a standby grants what the primary holds, so there every lock is an error.
func TestP14_Standby(t *testing.T) {
	t.Parallel()
	primary := pgtest.Fresh(t)
	if err := pgtest.Open(t, pgtest.Through(primary.DSN("postgres"))).AutoMigrate(&widget{}); err != nil {
		t.Fatal(err)
	}
	standby := pgtest.Standby(t, primary)
	dsn := standby.DSN("postgres")
	db := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()), pgtest.MaxConns(1))
	observer := pgtest.Observe(t, dsn)
	key := gormlock.Key(t.Name())
	for _, d := range everyDoor {
		for _, opts := range [][]gormlock.LockOption{nil, {gormlock.Try()}, {gormlock.Timeout(time.Minute)}, {gormlock.Shared()}, {gormlock.AllowSnapshot()}} {
			ask := func(db *gorm.DB) {
				if err := d.acquire(db, key, opts...); !errors.Is(err, gormlock.ErrStandby) || gormlock.IsRetryable(err) {
					t.Errorf("%s, options %v: %v", d.name, opts, err)
				}
				observer.AssertFree(t, key)
			}
			if !d.inside {
				ask(db)
				continue
			}
			err := db.Transaction(func(tx *gorm.DB) error {
				ask(tx)
				return tx.Find(&[]widget{}).Error
			})
			if err != nil {
				t.Errorf("%s: the transaction is not usable: %v", d.name, err)
			}
		}
	}
}
