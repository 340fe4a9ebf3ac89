package belongs_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A team and its fans are linked by rows that are deleted softly.
type (
	team struct {
		ID      int64
		Fans    []fan `gorm:"many2many:team_fans"`
		Version int64 `gormlock:"version"`
	}
	fan struct {
		ID      int64
		Version int64 `gormlock:"version"`
	}
	teamFan struct {
		TeamID    int64 `gorm:"primaryKey"`
		FanID     int64 `gorm:"primaryKey"`
		DeletedAt gorm.DeletedAt
		Version   int64 `gormlock:"version"`
	}
)

// What was unlinked softly is linked again, or an error says that it is not.
func TestLink_thatWasDeletedSoftly(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&team{}, &fan{}}, func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.SetupJoinTable(&team{}, "Fans", &teamFan{}))
		stand.Must(t, db.AutoMigrate(&team{}, &teamFan{}))
		mine, fans := team{Fans: []fan{{}, {}}}, []fan(nil)
		stand.Must(t, db.Create(&mine).Error)
		one := mine.Fans[0]
		stand.Must(t, db.Model(&mine).Association("Fans").Delete(&one))
		for name, link := range map[string]func() error{
			"Append":  func() error { return db.Model(&mine).Association("Fans").Append(&one) },
			"Replace": func() error { return db.Model(&mine).Association("Fans").Replace(&one) },
			"Save":    func() error { m := mine; m.Fans = []fan{one}; return db.Save(&m).Error },
			"several": func() error { return db.Model(&mine).Association("Fans").Append([]fan{{}, one}) },
		} {
			var all int64
			mine = team{ID: mine.ID}
			stand.Must(t, db.Preload("Fans").Find(&mine).Error)
			if err := link(); err == nil || !strings.Contains(err.Error(), "deleted softly") {
				t.Errorf("%s: %v", name, err)
			}
			stand.Must(t, db.Model(&fan{}).Count(&all).Error)
			stand.Equal(t, name+", fans", all, 2)
		}
		mine = team{ID: mine.ID}
		stand.Must(t, db.Find(&mine).Error)
		stand.Must(t, db.Model(&mine).Association("Fans").Append(&fan{ID: 2})) // which is linked
		stand.Must(t, db.Unscoped().Model(&teamFan{}).Where("fan_id = ?", one.ID).Update("deleted_at", nil).Error)
		stand.Must(t, db.Model(&mine).Association("Fans").Append(&one))
		stand.Must(t, db.Model(&mine).Association("Fans").Find(&fans))
		stand.Equal(t, "fans", len(fans), 2)
	})
}

// What is linked already can be appended: GORM then has it twice in the struct, and links it twice.
func TestLink_thatIsThere(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&team{}, &fan{}}, func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.SetupJoinTable(&team{}, "Fans", &teamFan{}))
		stand.Must(t, db.AutoMigrate(&team{}, &teamFan{}))
		mine := team{Fans: []fan{{}}}
		stand.Must(t, db.Create(&mine).Error)
		one, other := mine.Fans[0], fan{}
		stand.Must(t, db.Create(&other).Error)
		stand.Must(t, db.Model(&mine).Association("Fans").Append(&one))
		stand.Must(t, db.Save(&mine).Error)
		stand.Must(t, db.Model(&mine).Association("Fans").Append(&other, &other))
		stand.Must(t, db.Save(&mine).Error)
		var links []teamFan
		stand.Must(t, db.Find(&links).Error)
		stand.Equal(t, "links", len(links), 2)
		var read team
		stand.Must(t, db.Preload("Fans").Find(&read).Error)
		stand.Must(t, db.Save(&read).Error)
	})
}
