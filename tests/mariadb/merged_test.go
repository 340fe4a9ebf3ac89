package mariadb_test

import (
	"errors"
	"testing"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// SaveMerged writes what only one has changed on the row as it is, and what both have changed is a conflict.
func TestSaveMerged(t *testing.T) {
	t.Parallel()
	db := open(t, &account{})
	base := account{ID: 1, Balance: 1, Note: "n"}
	stand.Must(t, db.Create(&base).Error)
	tx := begin(t, db)
	stand.Must(t, tx.First(&account{}, 1).Error) // the snapshot
	theirs, mine := base, base
	theirs.Balance = 2
	stand.Must(t, db.Save(&theirs).Error)
	mine.Note = "N"
	stand.Must(t, gormlock.SaveMerged(tx, &mine, &base))
	stand.Must(t, tx.Commit().Error)
	stand.Equal(t, "merged", mine, account{ID: 1, Balance: 2, Note: "N", Version: mine.Version})
	stand.Equal(t, "stored", stand.Row[account](t, db, 1), mine)
	both := base
	both.Balance = 5
	var conflict *gormlock.ConflictError
	if err := gormlock.SaveMerged(db, &both, &base); !errors.As(err, &conflict) {
		t.Error("both changed it:", err)
	}
}
