package merges_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// vault keeps a column in another form, in a field that is a plain string.
type vault struct {
	ID      int64
	Name    string
	Sealed  string
	Secret  string `gorm:"-"`
	Version int64  `gormlock:"version"`
}

func (s *vault) AfterFind(*gorm.DB) error  { s.Secret = s.Sealed; return nil }
func (s *vault) BeforeSave(*gorm.DB) error { s.Sealed = s.Secret; return nil }

// unversionedVault is vault without a version.
type unversionedVault struct {
	ID     int64
	Name   string
	Sealed string
	Secret string `gorm:"-"`
}

func (s *unversionedVault) AfterFind(*gorm.DB) error  { s.Secret = s.Sealed; return nil }
func (s *unversionedVault) BeforeSave(*gorm.DB) error { s.Sealed = s.Secret; return nil }

var errMergeUndone = errors.New("undo")

// What AfterFind makes of a row that others wrote leaves the struct again when the transaction is rolled back: a hook would make a
// column of it.
func TestSaveMerged_rollbackRestoresWhatAfterFindMade(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&vault{}, &unversionedVault{}}, func(t *testing.T, db *gorm.DB) {
		made := stand.Made(t, db, vault{Name: "a", Secret: "one"})
		mine, base := stand.Row[vault](t, db, made.ID), stand.Row[vault](t, db, made.ID)
		mine.Name = "mine"
		undone := db.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, tx.Exec("UPDATE vaults SET sealed = 'other', version = version + 1").Error)
			stand.Must(t, gormlock.SaveMerged(tx, &mine, &base))
			stand.Equal(t, "merged", mine.Secret, "other")
			return errMergeUndone
		})
		stand.Equal(t, "end", undone, errMergeUndone)
		stand.Equal(t, "after the rollback", mine.Secret, "one")
		stand.Must(t, db.Save(&mine).Error)
		stand.Equal(t, "stored", stand.Row[vault](t, db, made.ID).Sealed, "one")

		plain := stand.Made(t, db, unversionedVault{Name: "a", Secret: "one"})
		mineToo, baseToo := stand.Row[unversionedVault](t, db, plain.ID), stand.Row[unversionedVault](t, db, plain.ID)
		mineToo.Name = "mine"
		undone = db.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, tx.Exec("UPDATE unversioned_vaults SET sealed = 'other'").Error)
			stand.Must(t, gormlock.SaveMerged(tx, &mineToo, &baseToo))
			return errMergeUndone
		})
		stand.Equal(t, "end", undone, errMergeUndone)
		stand.Must(t, gormlock.SaveMerged(db, &mineToo, &baseToo))
		stand.Equal(t, "stored without a version", stand.Row[unversionedVault](t, db, plain.ID).Sealed, "one")
	})
}

// An attempt takes nothing for a change of the caller's that the attempt before it has merged.
func TestSaveMerged_eachAttemptMergesAfresh(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&vault{}})
	for _, then := range []string{"one", "three"} {
		made := stand.Made(t, db, vault{Name: "a", Secret: "one"})
		mine, base := stand.Row[vault](t, db, made.ID), stand.Row[vault](t, db, made.ID)
		mine.Name = "mine"
		rival := func(secret string) {
			stand.Must(t, db.Exec("UPDATE vaults SET sealed = ?, version = version + 1 WHERE id = ?", secret, made.ID).Error)
		}
		rival("two")
		attempts := 0
		stand.Must(t, gormlock.Transaction(db, func(tx *gorm.DB) error {
			if attempts++; attempts == 2 {
				rival(then)
			}
			if err := gormlock.SaveMerged(tx, &mine, &base); err != nil || attempts > 1 {
				return err
			}
			return gormlock.ErrStale // of something else in the transaction
		}, gormlock.Attempts(3)))
		row := stand.Row[vault](t, db, made.ID)
		stand.Equal(t, "row", row.Name+", "+row.Sealed, "mine, "+then)
	}
}
