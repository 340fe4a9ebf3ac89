package fences_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	trunk struct {
		ID      int64
		Fence   int64 `gorm:"not null;default:0" gormlock:"fence,key=trunk"`
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	branch struct {
		ID      int64
		Text    string
		TrunkID int64
		Trunk   *trunk `gormlock:"root"`
		Fence   int64  `gorm:"not null;default:0" gormlock:"fence,key=trunk"`
		Version int64  `gorm:"not null;default:1" gormlock:"version"`
	}
	leaf struct {
		ID       int64
		Text     string
		BranchID int64
		Branch   *branch `gormlock:"root"`
	}
)

// IgnoreFence is for all that the statement writes: also for the roots of its rows, and the roots of these.
func TestIgnoreFence_reachesRoots(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&trunk{}, &branch{}, &leaf{}})
	ignoring := db.Clauses(gormlock.IgnoreFence()).Session(&gorm.Session{})
	moved := func(what string, of *trunk, write func() error) {
		t.Helper()
		before := stand.Row[trunk](t, db, of.ID)
		if err := write(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		stand.Equal(t, what+": version of the root", stand.Row[trunk](t, db, of.ID).Version, before.Version+1)
	}
	one := stand.Made(t, ignoring, trunk{})
	b, l := branch{TrunkID: one.ID}, leaf{}
	moved("create", &one, func() error { return ignoring.Create(&b).Error })
	moved("update", &one, func() error { return ignoring.Model(&b).Update("text", "x").Error })
	moved("Touch", &one, func() error { return gormlock.Touch(ignoring, &b) })
	moved("SaveMerged", &one, func() error {
		base := b
		b.Text = "y"
		return gormlock.SaveMerged(ignoring, &b, &base)
	})
	moved("Save", &one, func() error { return ignoring.Save(&b).Error })
	moved("of a part without a fence", &one, func() error {
		l = leaf{BranchID: b.ID}
		return ignoring.Create(&l).Error
	})
	moved("its update", &one, func() error { return ignoring.Model(&l).Update("text", "x").Error })
	moved("of many", &one, func() error { return ignoring.Model(&leaf{}).Where("true").Update("text", "y").Error })
	moved("its upsert", &one, func() error { return ignoring.Clauses(clause.OnConflict{UpdateAll: true}).Create(&l).Error })
	moved("its delete", &one, func() error { return ignoring.Delete(&l).Error })
	moved("delete", &one, func() error { return ignoring.Delete(&branch{}, b.ID).Error })
	for name, err := range map[string]error{
		"a part":                 db.Create(&leaf{BranchID: b.ID, Branch: &b}).Error,
		"the next statement":     ignoring.Session(&gorm.Session{NewDB: true}).Create(&branch{TrunkID: one.ID}).Error,
		"a model without a root": ignoring.Create(&shelfRoom{}).Error,
	} {
		if !errors.Is(err, gormlock.ErrFenceMissing) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
