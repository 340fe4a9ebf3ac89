package rows_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// V28: a sub-query in a join locks its rows, as GORM itself allows.
func TestV28_RowLockInAJoinedSubQuery(t *testing.T) {
	t.Parallel()
	db := seats(t)
	stand.InTx(t, db, func(tx *gorm.DB) {
		locked := tx.Model(&seat{}).Select("id").Where("id = 2").Clauses(gormlock.RowLock(gormlock.ForUpdate))
		var found []seat
		stand.Must(t, tx.Joins("JOIN (?) AS l ON l.id = seats.id", locked).Find(&found).Error)
		stand.Equal(t, "rows", len(found), 1)
		stand.Equal(t, "locked", len(stand.NewRowRival(t).Locked("seats")), 1)
	})
}

// V28: a row that a policy of the table lets nobody update is not said to be locked by another.
func TestV28_LockRowUnderRowLevelSecurity(t *testing.T) {
	t.Parallel()
	db := seats(t)
	stand.Must(t, db.Exec("CREATE ROLE gormlock_reader_v28").Error)
	t.Cleanup(func() { db.Exec("DROP OWNED BY gormlock_reader_v28; DROP ROLE gormlock_reader_v28") })
	var schema string
	stand.MustDo(t, db.Raw("SELECT current_schema()").Scan(&schema))
	stand.Must(t, db.Exec(`GRANT USAGE ON SCHEMA `+schema+` TO gormlock_reader_v28; GRANT SELECT, UPDATE ON seats TO gormlock_reader_v28;
		ALTER TABLE seats ENABLE ROW LEVEL SECURITY;
		CREATE POLICY reads ON seats FOR SELECT USING (true); CREATE POLICY writes ON seats FOR UPDATE USING (id = 1)`).Error)
	stand.InTx(t, db, func(tx *gorm.DB) {
		stand.MustDo(t, tx.Exec("SET LOCAL ROLE gormlock_reader_v28"))
		stand.Must(t, gormlock.LockRow(tx, &seat{ID: 1}, gormlock.Try()))
		for name, opt := range map[string]gormlock.RowLockOption{"try": gormlock.Try(), "skip": gormlock.Skip()} {
			err := gormlock.LockRow(tx, &seat{ID: 2}, opt)
			if err == nil || errors.Is(err, gormlock.ErrNotAcquired) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	stand.InTx(t, db, func(rival *gorm.DB) {
		stand.Must(t, gormlock.LockRow(rival, &seat{ID: 1}))
		stand.InTx(t, db.Session(&gorm.Session{DisableNestedTransaction: true}), func(tx *gorm.DB) {
			stand.MustDo(t, tx.Exec("SET LOCAL ROLE gormlock_reader_v28"))
			if err := gormlock.LockRow(tx, &seat{ID: 1}, gormlock.Try()); !errors.Is(err, gormlock.ErrNotAcquired) {
				t.Errorf("what a rival holds: %v", err)
			}
			stand.MustDo(t, tx.Exec("SELECT 1")) // the transaction is still usable
		})
	})
}

// A text that begins with SAVEPOINT takes the lock that is asked for, or refuses.
func TestLockOfATextThatBeginsWithASavepoint(t *testing.T) {
	t.Parallel()
	db := seats(t)
	key := lockkey.Of("text", t.Name())
	for _, text := range []string{"SAVEPOINT a", "SAVEPOINT a; UPDATE seats SET hall_id = hall_id", "/* x */ RELEASE a"} {
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.Must(t, tx.Exec("SAVEPOINT a").Error)
			err := tx.Clauses(gormlock.XactLock(key)).Exec(text).Error
			rival := db.Transaction(func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, []lockkey.Key{key}, gormlock.Try()) })
			if err == nil && !errors.Is(rival, gormlock.ErrNotAcquired) {
				t.Errorf("%s: no error, and no lock: %v", text, rival)
			}
		})
	}
}
