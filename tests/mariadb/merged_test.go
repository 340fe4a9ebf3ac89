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

type reading struct {
	ID    int64
	Level float64
	Rate  string `gorm:"type:decimal(10,2)"`
	Seen  bool
}

// The server is asked about the row as it is: the snapshot of the transaction would show that nobody has changed it.
func TestSaveMerged_readsPastTheSnapshot(t *testing.T) {
	t.Parallel()
	db := open(t, &reading{})
	stand.Must(t, db.Create(&reading{ID: 1, Level: 1.5, Rate: "1.50"}).Error)
	tx := begin(t, db)
	var base reading
	stand.Must(t, tx.First(&base, 1).Error) // the snapshot
	stand.Must(t, db.Exec("UPDATE readings SET level = 9.5, rate = 9.5").Error)
	for column, change := range map[string]func(*reading){
		"level": func(r *reading) { r.Level = 2.5 },
		"rate":  func(r *reading) { r.Rate = "2.5" },
	} {
		mine := base
		change(&mine)
		var conflict *gormlock.ConflictError
		if err := gormlock.SaveMerged(tx, &mine, &base); !errors.As(err, &conflict) || conflict.Columns[0].Column != column {
			t.Errorf("%s: %v", column, err)
		}
	}
	mine := base
	mine.Seen = true
	stand.Must(t, gormlock.SaveMerged(tx, &mine, &base))
	stand.Must(t, tx.Commit().Error)
	stand.Equal(t, "row", stand.Row[reading](t, db, 1), reading{ID: 1, Level: 9.5, Rate: "9.50", Seen: true})
}
