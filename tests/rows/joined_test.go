package rows_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// TestPreloadedLocksWhatIsJoined: an association that Joins reads and Preload names is locked as any other that Preload
// names, and where it could not be the query is refused.
func TestPreloadedLocksWhatIsJoined(t *testing.T) {
	t.Parallel()
	db := seats(t)
	other := stand.NewRowRival(t)
	lock := func(of ...string) func(*gorm.DB) *gorm.DB {
		opts := []gormlock.RowLockOption{gormlock.Preloaded()}
		if len(of) > 0 {
			opts = append(opts, gormlock.Of(of...))
		}
		return gormlock.WithRowLock(gormlock.ForUpdate, opts...)
	}
	for name, query := range map[string]func(tx *gorm.DB) *gorm.DB{
		"Joins":        func(tx *gorm.DB) *gorm.DB { return tx.Joins("Hall").Preload("Hall").Scopes(lock()) },
		"InnerJoins":   func(tx *gorm.DB) *gorm.DB { return tx.InnerJoins("Hall").Preload("Hall").Scopes(lock()) },
		"Of":           func(tx *gorm.DB) *gorm.DB { return tx.InnerJoins("Hall").Preload("Hall").Scopes(lock("seats", "Hall")) },
		"Associations": func(tx *gorm.DB) *gorm.DB { return tx.Joins("Hall").Preload(clause.Associations).Scopes(lock()) },
		"Of, with conditions": func(tx *gorm.DB) *gorm.DB {
			return tx.InnerJoins("Hall", db.Where(&hall{Name: "big"})).Preload("Hall").Scopes(lock("seats", "Hall"))
		},
	} {
		stand.InTx(t, db, func(tx *gorm.DB) {
			var rows []seat
			stand.MustDo(t, query(tx).Where(`"Hall"."name" = ?`, "big").Find(&rows))
			if len(rows) != 4 || rows[3].Hall == nil || rows[3].Hall.Name != "big" {
				t.Errorf("%s: read %+v", name, rows)
			}
			stand.Equal(t, name+": locked halls", len(other.LockedAgainst("halls", "FOR NO KEY UPDATE")), 1)
		})
	}
	stand.InTx(t, db, func(tx *gorm.DB) {
		var one seat
		stand.MustDo(t, tx.Joins("Hall").Preload("Hall").Scopes(lock()).Order("seats.id").Take(&one))
		if one.Hall == nil || len(other.LockedAgainst("halls", "FOR NO KEY UPDATE")) != 1 {
			t.Errorf("one struct: %+v", one)
		}
		err := tx.Joins("Hall", db.Where(&hall{Name: "big"})).Preload("Hall").Scopes(lock()).Find(&[]seat{}).Error
		if err == nil || !strings.Contains(err.Error(), "Preloaded does not lock Hall") {
			t.Errorf("a join with conditions: %v", err)
		}
	})
	stand.InTx(t, db, func(tx *gorm.DB) {
		again := tx.Joins("Hall").Preload("Hall").Scopes(lock()).Model(&seat{})
		for range 2 {
			var rows []seat
			stand.MustDo(t, again.Where(`"Hall"."name" = ?`, "big").Find(&rows))
			stand.Equal(t, "rows of a query that is used again", len(rows), 4)
		}
	})
}
