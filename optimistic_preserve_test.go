package gormlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

type visited struct {
	ID          int64
	Name        string
	UpdatedAt   time.Time
	LockVersion int64 `gorm:"not null;default:0" gormlock:"version,rails"`
}

// TestR15_TouchWithoutBump: the time moves and the version does not, and it is checked as ever.
func TestR15_TouchWithoutBump(t *testing.T) {
	t.Parallel()
	onBoth(t, []any{&visited{}}, func(t *testing.T, db *gorm.DB) {
		v := visited{Name: "a", UpdatedAt: time.Now().Add(-time.Hour)}
		must(t, db.Create(&v).Error)
		stale, before := v, v.UpdatedAt
		quiet := db.Clauses(gormlock.PreserveVersion()).Session(&gorm.Session{})
		must(t, gormlock.Touch(quiet, &v))
		equal(t, "touched", v.LockVersion, 0)
		stored := row[visited](t, db, v.ID)
		equal(t, "stored", stored.LockVersion, 0)
		equal(t, "the time moved", stored.UpdatedAt.After(before), true)

		must(t, quiet.Model(&v).Update("name", "b").Error)
		equal(t, "updated", row[visited](t, db, v.ID).LockVersion, 0)
		equal(t, "in memory", v.LockVersion, 0)
		must(t, db.Model(&v).Update("name", "c").Error)
		equal(t, "an ordinary update", v.LockVersion, 1)
		if err := quiet.Model(&stale).Update("name", "too late"); !errors.Is(err.Error, gormlock.ErrStale) {
			t.Error(err.Error)
		}
		if err := gormlock.Touch(quiet, &stale); !errors.Is(err, gormlock.ErrStale) {
			t.Error(err)
		}
	})
}

// TestR20_UpsertWithoutBump: on the conflict path the row keeps its version, and no struct claims to know it that does
// not hold the whole row.
func TestR20_UpsertWithoutBump(t *testing.T) {
	t.Parallel()
	onBoth(t, []any{&visited{}, &account{}}, func(t *testing.T, db *gorm.DB) {
		quiet := db.Clauses(gormlock.PreserveVersion()).Session(&gorm.Session{})
		a := account{ID: 1, Balance: 10}
		must(t, db.Create(&a).Error)
		must(t, db.Model(&a).Update("balance", 20).Error)

		part := account{ID: 1, Balance: 30}
		must(t, quiet.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"balance"})}).Create(&part).Error)
		stored := row[account](t, db, 1)
		equal(t, "balance", stored.Balance, 30)
		equal(t, "version", stored.Version, 2)
		if err := db.Save(&part).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
			t.Errorf("a struct that holds a part of the row: %v", err)
		}

		whole := account{ID: 1, Balance: 40}
		must(t, quiet.Clauses(clause.OnConflict{UpdateAll: true}).Create(&whole).Error)
		equal(t, "version", row[account](t, db, 1).Version, 2)
		must(t, db.Save(&whole).Error)
		equal(t, "the whole row is known", whole.Version, 3)

		v := visited{ID: 1, Name: "a"}
		must(t, db.Create(&v).Error)
		partly := visited{ID: 1, Name: "b"}
		must(t, quiet.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"name"})}).Create(&partly).Error)
		equal(t, "version", row[visited](t, db, 1).LockVersion, 0)
		if err := db.Save(&partly).Error; err == nil {
			t.Error("where zero is a loaded version a struct that holds a part of the row saved all of it")
		}

		if err := quiet.Clauses(clause.OnConflict{UpdateAll: true}).Create(&whole).Error; err == nil {
			t.Error("an upsert of a struct that was read cannot be told from an insert")
		}
	})
}

// TestR25_WithoutVersions: the whole database can be left alone, and a statement that asks all the same is told.
func TestR25_WithoutVersions(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New(gormlock.WithoutVersions())))
	must(t, db.AutoMigrate(&account{}))
	a := account{Balance: 1}
	must(t, db.Create(&a).Error)
	stale := a
	must(t, db.Model(&a).Update("balance", 2).Error)
	must(t, db.Model(&stale).Update("balance", 3).Error)
	equal(t, "version", row[account](t, db, a.ID).Version, a.Version)
	for _, c := range []clause.Expression{gormlock.ExpectVersion(1), gormlock.IgnoreVersion(), gormlock.PreserveVersion()} {
		if err := db.Clauses(c).Model(&a).Update("balance", 4).Error; !errors.Is(err, gormlock.ErrOption) {
			t.Errorf("%T: %v", c, err)
		}
	}
	if err := gormlock.Touch(db, &a); !errors.Is(err, gormlock.ErrOption) {
		t.Error(err)
	}
}

// TestG19_ClausesOfGenerics: what db.Clauses takes, gorm.G takes.
func TestG19_ClausesOfGenerics(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := versioned(t, []any{&account{}})
	a := account{Balance: 1}
	must(t, db.Create(&a).Error)
	stale := a
	must(t, db.Model(&a).Update("balance", 2).Error)
	if _, err := gorm.G[account](db).Updates(ctx, account{ID: a.ID, Balance: 3, Version: stale.Version}); !errors.Is(err, gormlock.ErrStale) {
		t.Error(err)
	}
	_, err := gorm.G[account](db, gormlock.IgnoreVersion()).Updates(ctx, account{ID: a.ID, Balance: 3, Version: stale.Version})
	must(t, err)
	equal(t, "ignored, and bumped", row[account](t, db, a.ID).Version, 3)
	_, err = gorm.G[account](db, gormlock.PreserveVersion()).Where("id = ?", a.ID).Update(ctx, "balance", 4)
	must(t, err)
	equal(t, "preserved", row[account](t, db, a.ID).Version, 3)
	before := row[account](t, db, a.ID)
	must(t, db.Model(&account{}).Where("id = ?", a.ID).Update("balance", 5).Error)
	if _, err := gorm.G[account](db, gormlock.IfUnchanged(&before, "balance"), gormlock.IgnoreVersion()).Where("id = ?", a.ID).Update(ctx, "note", "n"); !errors.Is(err, gormlock.ErrStale) {
		t.Errorf("balance changed: %v", err)
	}
	if err := gormlock.Touch(db.Clauses(gormlock.IgnoreVersion()), &account{ID: a.ID}); err != nil {
		t.Error(err)
	}
}
