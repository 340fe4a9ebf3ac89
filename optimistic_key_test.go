package gormlock_test

import (
	"testing"
	"time"

	"gorm.io/gorm"
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
	db := versioned(t, []any{&textKeys{}})
	all := []textKeys{{A: "a_b", B: "c"}, {A: "a", B: "b_c"}}
	must(t, db.Create(&all).Error)
	before := append([]textKeys(nil), all...)
	mustStale(t, db.Model(&all).Update("n", 1).Error)
	for i := range all {
		equal(t, "struct", all[i], before[i])
	}
	must(t, db.Save(&all).Error)
	equal(t, "both", all[0].Version+all[1].Version, 4)
	must(t, db.Model(&textKeys{}).Where("a = 'a'").Update("n", 2).Error) // the rival
	mustStale(t, db.Model(&all).Update("n", 3).Error)
	e := mustBeStale(t, db.Save(&all).Error)
	equal[any](t, "key", e.PrimaryKey["b"], "b_c")
	mustStale(t, db.Delete(&all).Error)
	var n int64
	must(t, db.Model(&textKeys{}).Where("n < 3").Count(&n).Error)
	equal(t, "rows", n, 2)
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
	db := versioned(t, []any{&timeKey{}})
	at := time.Now().In(time.FixedZone("east", 3*60*60))
	all := []timeKey{{Device: 1, At: at}, {Device: 2, At: at}}
	must(t, db.Create(&all).Error)
	for n := range 2 {
		must(t, db.Model(&all).Update("n", n).Error)
	}
	must(t, db.Save(&all).Error)
	for i := range all {
		equal(t, "version", all[i].Version, 4)
		must(t, db.Model(&all[i]).Update("n", gorm.Expr("n + 1")).Error)
	}
}
