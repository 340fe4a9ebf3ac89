package belongs_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A statement that leaves the foreign key out leaves it to the next Save, whichever of the two was assigned.
func TestOthers_keepWhatWasAssigned(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, all, func(t *testing.T, db *gorm.DB) {
		for name, write := range map[string]func(c *clerk) error{
			"Touch": func(c *clerk) error { return gormlock.Touch(db, c) },
			"VerifyVersion": func(c *clerk) error {
				return db.Transaction(func(tx *gorm.DB) error { return gormlock.VerifyVersion(tx, c) })
			},
			"Omit":   func(c *clerk) error { return db.Model(c).Omit("Land").Update("name", "x").Error },
			"Select": func(c *clerk) error { return db.Model(c).Select("name").Updates(map[string]any{"name": "y"}).Error },
			"own assignments": func(c *clerk) error {
				return db.Where("id = 1").Model(c).Clauses(clause.Set{{Column: clause.Column{Name: "name"}, Value: "z"}}).Updates(map[string]any{}).Error
			},
			"own assignments of itself": func(c *clerk) error {
				return db.Where("id = 1").Clauses(clause.Set{{Column: clause.Column{Name: "name"}, Value: "z"}}).Updates(c).Error
			},
			"Select, struct": func(c *clerk) error { return db.Select("name").Updates(c).Error },
		} {
			for _, byKey := range []bool{true, false} {
				c := &settled(t, db)[0]
				if c.Land = (&land{ID: 2}); byKey {
					c.LandID, c.Land = 2, &land{ID: 1}
				}
				before := stored(t, db, 1).Land
				stand.Must(t, write(c))
				stand.Equal(t, name, stored(t, db, 1).Land, before)
				stand.MustDo(t, db.Save(c))
				stand.Equal(t, name+", Save", stored(t, db, 1).Land, 2)
			}
		}
	})
}
