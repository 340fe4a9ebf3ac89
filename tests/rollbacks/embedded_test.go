package rollbacks_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type tally struct {
	ID      int64
	Name    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// TestRollback_ofAModelWithinAForm: a model that a form embeds was read in a transaction that had written its row, and was rolled back. Its Save
// says that it was not read.
func TestRollback_ofAModelWithinAForm(t *testing.T) {
	t.Parallel()
	type form struct {
		Tally tally `gorm:"embedded"`
		Count int
	}
	db := stand.Versioned(t, []any{&tally{}})
	stand.Must(t, db.Create(&tally{Name: "a"}).Error)
	var read []form
	if err := db.Transaction(func(tx *gorm.DB) error {
		stand.Must(t, tx.Model(&tally{}).Where("id = 1").Update("name", "b").Error)
		stand.Must(t, tx.Model(&tally{}).Select("tallies.*, 1 AS count").Find(&read).Error)
		return errUndo
	}); !errors.Is(err, errUndo) {
		t.Fatal(err)
	}
	stand.MustBeUnread(t, db.Save(&read[0].Tally).Error)
	stand.Equal(t, "name", stand.Row[tally](t, db, 1).Name, "a")
}
