package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type spelled struct {
	ID      string `gorm:"type:uuid;primaryKey"`
	Name    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type padded struct {
	Code    string `gorm:"type:char(8);primaryKey"`
	Name    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// P35: the server writes a key in its own way. A struct whose program writes it in another is its row all the same, in a
// slice too: it is compared, it gets its version, and it is not gone for ever.
func TestP35_KeysInTheServersSpelling(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&spelled{}, &padded{}})
	ids := []string{"0AD5B1C4-0000-4000-8000-00000000000A", "0AD5B1C4-0000-4000-8000-00000000000B"}
	for _, id := range ids {
		stand.Must(t, db.Create(&spelled{ID: id, Name: "a"}).Error)
	}
	stand.Must(t, db.Create(&[]padded{{Code: "x"}, {Code: "y"}}).Error)

	for name, write := range map[string]func(rows *[]spelled) error{
		"Save":   func(rows *[]spelled) error { return db.Save(rows).Error },
		"Update": func(rows *[]spelled) error { return db.Model(rows).Update("name", "b").Error },
		"upsert": func(rows *[]spelled) error {
			return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(rows).Error
		},
	} {
		now := stand.Row[spelled](t, db, strings.ToLower(ids[0])).Version
		rows := []spelled{{ID: ids[0], Name: name, Version: now}, {ID: ids[1], Name: name, Version: stand.Row[spelled](t, db, strings.ToLower(ids[1])).Version}}
		stale := append([]spelled{}, rows...)
		stand.Must(t, write(&rows))
		for i := range rows {
			stand.Equal(t, name+": version", rows[i].Version, stand.Row[spelled](t, db, strings.ToLower(ids[i])).Version)
		}
		stand.Equal(t, name+": moved", rows[0].Version, now+1)
		stand.Must(t, write(&rows))
		err := write(&stale)
		stand.MustStale(t, err)
		if strings.Contains(err.Error(), "gone") {
			t.Errorf("%s: %v", name, err)
		}
	}

	pads := []padded{{Code: "x", Name: "n", Version: 1}, {Code: "y", Name: "n", Version: 1}}
	stand.Must(t, db.Save(&pads).Error)
	stand.Equal(t, "char(n)", pads[1].Version, 2)
	stand.Must(t, db.Session(&gorm.Session{}).Model(&pads).Update("name", "m").Error)
	stand.Equal(t, "char(n)", pads[0].Version, 3)
}
