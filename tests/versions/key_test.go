package versions_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type textKeys struct {
	A, B    string `gorm:"primaryKey"`
	N       int
	Version int64 `gormlock:"version"`
}

// G6: two keys that read the same when their parts are joined are two rows. GORM takes them for one, and leaves one of
// them out of an update: that is said.
func TestG6_KeysThatLookAlike(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&textKeys{}})
	all := []textKeys{{A: "a_b", B: "c"}, {A: "a", B: "b_c"}}
	stand.Must(t, db.Create(&all).Error)
	before := append([]textKeys(nil), all...)
	stand.MustStale(t, db.Model(&all).Update("n", 1).Error)
	for i := range all {
		stand.Equal(t, "struct", all[i], before[i])
	}
	stand.Must(t, db.Save(&all).Error)
	stand.Equal(t, "both", all[0].Version+all[1].Version, 4)
	stand.Must(t, db.Model(&textKeys{}).Where("a = 'a'").Update("n", 2).Error) // the rival
	stand.MustStale(t, db.Model(&all).Update("n", 3).Error)
	e := stand.MustBeStale(t, db.Save(&all).Error)
	stand.Equal[any](t, "key", e.PrimaryKey["b"], "b_c")
	stand.MustStale(t, db.Delete(&all).Error)
	var n int64
	stand.Must(t, db.Model(&textKeys{}).Where("n < 3").Count(&n).Error)
	stand.Equal(t, "rows", n, 2)
}

type timeKey struct {
	Device  int64     `gorm:"primaryKey;autoIncrement:false"`
	At      time.Time `gorm:"primaryKey"`
	N       int
	Version int64 `gormlock:"version"`
}

// G6: a time comes back in another zone and without its nanoseconds.
func TestG6_KeyOfTime(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&timeKey{}})
	at := time.Now().In(time.FixedZone("east", 3*60*60))
	all := []timeKey{{Device: 1, At: at}, {Device: 2, At: at}}
	stand.Must(t, db.Create(&all).Error)
	for n := range 2 {
		stand.Must(t, db.Model(&all).Update("n", n).Error)
	}
	stand.Must(t, db.Save(&all).Error)
	for i := range all {
		stand.Equal(t, "version", all[i].Version, 4)
		stand.Must(t, db.Model(&all[i]).Update("n", gorm.Expr("n + 1")).Error)
	}
}
