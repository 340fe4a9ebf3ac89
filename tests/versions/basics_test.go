package versions_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

func TestVersionBasics(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&stand.Account{}}, versionBasics)
}

func versionBasics(t *testing.T, db *gorm.DB) {
	a := stand.Made(t, db, stand.Account{Balance: 100})
	stand.Equal(t, "created", a.Version, 1)
	stand.Equal(t, "created", stand.Row[stand.Account](t, db, a.ID).Version, 1)
	b := a
	stand.Must(t, db.Model(&a).Update("balance", 90).Error)
	stand.Equal(t, "updated", a, stand.Account{ID: a.ID, Balance: 90, Version: 2})
	stand.Equal(t, "stored", stand.Row[stand.Account](t, db, a.ID), a)

	err := db.Model(&b).Update("balance", 80).Error
	stale := stand.MustBeStale(t, err)
	stand.Equal(t, "message", err.Error(), "gormlock: accounts id=1: version 1 is stale, the row is at 2")
	stand.Equal[any](t, "expected", stale.Expected, int64(1))
	stand.Equal[any](t, "actual", stale.Actual, int64(2))
	stand.Equal(t, "struct", b, stand.Account{ID: a.ID, Balance: 100, Version: 1})
	b.Balance = 70
	stand.MustStale(t, db.Save(&b).Error)
	stand.MustStale(t, db.Delete(&b).Error)
	stand.Equal(t, "stored", stand.Row[stand.Account](t, db, a.ID), a)

	stand.Must(t, db.Model(&a).Update("note", "x").Error)
	stand.Equal(t, "unversioned", stand.Row[stand.Account](t, db, a.ID), a)
	stand.Equal(t, "unversioned", a.Version, 2)
	stand.Must(t, db.Model(&a).Update("balance", gorm.Expr("balance + 10")).Error)
	stand.Equal(t, "V2", a.Balance, 100)
	stand.Equal(t, "V2", stand.Row[stand.Account](t, db, a.ID), a)
	a.Balance = 1
	stand.Must(t, db.Save(&a).Error)
	stand.Equal(t, "saved", stand.Row[stand.Account](t, db, a.ID), a)
	stand.Equal(t, "saved", a.Version, 4)
	stand.Must(t, db.Model(&stand.Account{}).Where("id = ?", a.ID).Update("balance", 5).Error)
	stand.Equal(t, "bulk", stand.Row[stand.Account](t, db, a.ID).Version, 5)
	stand.MustStale(t, db.Delete(&a).Error)
	stand.Must(t, db.First(&a).Error)
	stand.Must(t, db.Delete(&a).Error)
	e := stand.MustBeStale(t, db.Save(&a).Error)
	stand.Equal(t, "gone", e.Deleted, true)
	var missing stand.Account
	missing.ID = 5
	stand.Must(t, db.Save(&missing).Error)
	stand.Equal(t, "natural key", stand.Row[stand.Account](t, db, 5), missing)
	if err := db.Save(&stand.Account{ID: 5, Balance: 6}).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
		t.Error(err)
	}
}

func TestVersionBatch(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&stand.Account{}}, versionBatch)
}

func versionBatch(t *testing.T, db *gorm.DB) {
	all := make([]stand.Account, 10)
	stand.Must(t, db.Create(&all).Error)
	for i := range all {
		if i%2 == 0 {
			stand.Must(t, db.Model(&all[i]).Update("balance", i).Error)
		}
		if i%5 == 0 {
			stand.Must(t, db.Model(&all[i]).Update("balance", i).Error)
		}
	}
	stand.Must(t, db.Model(&all).Update("balance", 7).Error)
	for _, a := range all {
		stand.Equal(t, "row", stand.Row[stand.Account](t, db, a.ID), a)
	}
	stand.Must(t, db.Save(&all).Error)
	for _, a := range all {
		stand.Equal(t, "row", stand.Row[stand.Account](t, db, a.ID), a)
	}
	copies := append([]stand.Account(nil), all...)
	stand.Must(t, db.Model(&all[3]).Update("balance", 9).Error)
	before := append([]stand.Account(nil), copies...)
	stand.MustStale(t, db.Model(&copies).Update("balance", 1).Error)
	stand.MustStale(t, db.Save(&copies).Error)
	stand.MustStale(t, db.Delete(&copies).Error)
	for i := range copies {
		stand.Equal(t, "struct", copies[i], before[i])
	}
	for _, a := range all {
		stand.Equal(t, "row", stand.Row[stand.Account](t, db, a.ID), a)
	}
	stand.Must(t, db.Delete(&all[4]).Error)
	copies[3] = all[3]
	e := stand.MustBeStale(t, db.Save(&copies).Error)
	stand.Equal(t, "gone", e.Deleted, true)
	var n int64
	stand.Must(t, db.Model(&stand.Account{}).Count(&n).Error)
	stand.Equal(t, "count", n, 9)
}
