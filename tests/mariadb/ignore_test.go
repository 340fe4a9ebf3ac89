package mariadb_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// INSERT IGNORE leaves rows out in silence: a struct that was not stored would overwrite the row that was there.
func TestInsertIgnoreIsRefused(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]mariaserver.Option{"RETURNING": nil, "like MySQL": {stand.LikeMySQL}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := mariaserver.Open(t, []any{&product{}}, opts...)
			stand.Must(t, db.Create(&product{ID: 1, Code: "a", Price: 1}).Error)
			p := product{ID: 1, Code: "a", Price: 9}
			ignore := clause.Insert{Modifier: "LOW_PRIORITY ignore"}
			for _, err := range []error{
				db.Clauses(ignore).Create(&p).Error,
				db.Clauses(ignore).Create(&[]product{p}).Error,
				db.Clauses(ignore).Model(&product{}).Create(map[string]any{"id": 1, "code": "a"}).Error,
				db.Clauses(ignore).Save(&[]product{{ID: 1, Code: "a", Price: 9, Version: 1}}).Error,
			} {
				if err == nil || !strings.Contains(err.Error(), "DoNothing: true") {
					t.Error(err)
				}
			}
			if err := db.Save(&p).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
				t.Error("a struct that was not stored is saved:", err)
			}
			stand.Equal(t, "row", stand.Row[product](t, db, 1), product{ID: 1, Code: "a", Price: 1, Version: 1})
		})
	}
}
