package once_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A standby stores no key: the function does not run, and the error says where it can. A transaction that is read only on the primary is
// another error.
func TestOnce_onAStandby(t *testing.T) {
	t.Parallel()
	primary := pgtest.Fresh(t)
	db := pgtest.Open(t, pgtest.Through(primary.DSN("postgres")), pgtest.Plugin(gormlock.New()))
	stand.Must(t, gormlock.MigrateOnce(db))
	standby := pgtest.Open(t, pgtest.Through(pgtest.Standby(t, primary).DSN("postgres")), pgtest.Plugin(gormlock.New()))
	pgtest.Eventually(t, "the table is there", func() bool { return standby.Exec("SELECT FROM gormlock_once").Error == nil })
	never := func(*gorm.DB) (int, error) { panic("it runs") }
	stand.Must(t, standby.Transaction(func(tx *gorm.DB) error {
		if _, err := gormlock.Once(tx, "k", never); !errors.Is(err, gormlock.ErrStandby) || gormlock.IsRetryable(err) {
			t.Error(err)
		}
		return tx.Exec("SELECT 1").Error // the transaction is usable
	}))
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		stand.Must(t, tx.Exec("SET TRANSACTION READ ONLY").Error)
		if _, err := gormlock.Once(tx, "k", never); err == nil || errors.Is(err, gormlock.ErrStandby) {
			t.Error(err)
		}
		return nil
	}))
}
