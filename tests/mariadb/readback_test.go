package mariadb_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// What an update wrote is read behind it while its transaction has the row locked. Outside of one nothing is read: it might be a
// rival's, and the struct would get the rival's version.
func TestReturning_readsNothingOutsideOfATransaction(t *testing.T) {
	t.Parallel()
	db := mariaserver.Open(t, []any{&harbour{}, &ship{}}, mariaserver.Config(func(c *gorm.Config) { c.SkipDefaultTransaction = true }), stand.LikeMySQL)
	stand.Must(t, db.Create(&harbour{ID: 1}).Error)
	stand.Must(t, db.Create(&ship{ID: 1, HomeID: 1}).Error)
	s := stand.Row[ship](t, db, 1)
	recorded, r := stand.Recorded(db)
	stand.Must(t, recorded.Clauses(clause.Returning{}).Model(&s).Update("name", "x").Error)
	if texts := r.Seen(); len(texts) != 1 {
		t.Errorf("more than the update: %q", texts)
	}
	stand.Must(t, db.Save(&s).Error)
}
