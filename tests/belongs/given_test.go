package belongs_test

import (
	"fmt"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// Association(…).Append and Replace store what they are given, whatever foreign key the struct holds by then.
func TestAssociation_storesWhatItIsGiven(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, all, func(t *testing.T, db *gorm.DB) {
		two := int64(2)
		for name, change := range map[string]func(c *clerk){
			"as read":         func(*clerk) {},
			"another key":     func(c *clerk) { c.LandID, c.HomeID, c.DeskCode = 2, &two, "y" },
			"no key":          func(c *clerk) { c.LandID, c.HomeID, c.DeskCode = 0, nil, "" },
			"no associations": func(c *clerk) { c.Land, c.Home, c.Desk = nil, nil, desk{} },
			"both": func(c *clerk) {
				c.LandID, c.HomeID, c.DeskCode = 2, &two, "y"
				c.Land, c.Home, c.Desk = nil, nil, desk{}
			},
		} {
			for _, to := range []int64{1, 3} {
				for _, call := range []string{"Append", "Replace"} {
					c := settled(t, db)[0]
					change(&c)
					give := func(relation string, value any) error {
						if call == "Append" {
							return db.Model(&c).Association(relation).Append(value)
						}
						return db.Model(&c).Association(relation).Replace(value)
					}
					what := fmt.Sprintf("%s, %s of %d", name, call, to)
					code := map[int64]string{1: "x", 3: "z"}[to]
					stand.Must(t, give("Land", &land{ID: to, Name: "l"}))
					stand.Equal(t, what+": land", stand.Row[clerk](t, db, c.ID).LandID, to)
					stand.Must(t, give("Home", &land{ID: to, Name: "l"}))
					stand.Equal(t, what+": home", *stand.Row[clerk](t, db, c.ID).HomeID, to)
					stand.Must(t, give("Desk", &desk{ID: 10 + to, Code: code}))
					stand.Equal(t, what+": desk", stand.Row[clerk](t, db, c.ID).DeskCode, code)
				}
			}
		}
	})
}

// With FullSaveAssociations nothing tells which association was given: a foreign key that contradicts it is an error.
func TestAssociation_thatIsFullySaved(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, all, func(t *testing.T, db *gorm.DB) {
		c := settled(t, db)[0]
		c.LandID = 2
		err := db.Session(&gorm.Session{FullSaveAssociations: true}).Model(&c).Association("Land").Replace(&land{ID: 1, Name: "a"})
		if row := stand.Row[clerk](t, db, c.ID); err == nil && row.LandID != 1 {
			t.Errorf("no error, and the row has land %d", row.LandID)
		}
	})
}
