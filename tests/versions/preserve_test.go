package versions_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
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
	stand.OnEachAndMySQL(t, []any{&visited{}}, func(t *testing.T, db *gorm.DB) {
		v := stand.Made(t, db, visited{Name: "a", UpdatedAt: time.Now().Add(-time.Hour)})
		stale, before := v, v.UpdatedAt
		quiet := db.Clauses(gormlock.PreserveVersion()).Session(&gorm.Session{})
		stand.Must(t, gormlock.Touch(quiet, &v))
		stand.Equal(t, "touched", v.LockVersion, 0)
		stored := stand.Row[visited](t, db, v.ID)
		stand.Equal(t, "stored", stored.LockVersion, 0)
		stand.Equal(t, "the time moved", stored.UpdatedAt.After(before), true)

		stand.Must(t, quiet.Model(&v).Update("name", "b").Error)
		stand.Equal(t, "updated", stand.Row[visited](t, db, v.ID).LockVersion, 0)
		stand.Equal(t, "in memory", v.LockVersion, 0)
		stand.Must(t, db.Model(&v).Update("name", "c").Error)
		stand.Equal(t, "an ordinary update", v.LockVersion, 1)
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
	stand.OnEachAndMySQL(t, []any{&visited{}, &stand.Account{}}, func(t *testing.T, db *gorm.DB) {
		quiet := db.Clauses(gormlock.PreserveVersion()).Session(&gorm.Session{})
		a := stand.Made(t, db, stand.Account{ID: 1, Balance: 10})
		stand.Must(t, db.Model(&a).Update("balance", 20).Error)

		part := stand.Account{ID: 1, Balance: 30}
		stand.Must(t, quiet.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"balance"})}).Create(&part).Error)
		stored := stand.Row[stand.Account](t, db, 1)
		stand.Equal(t, "balance", stored.Balance, 30)
		stand.Equal(t, "version", stored.Version, 2)
		stand.Equal(t, "the struct is the row", part, stored)

		whole := stand.Account{ID: 1, Balance: 40}
		stand.Must(t, quiet.Clauses(clause.OnConflict{UpdateAll: true}).Create(&whole).Error)
		stand.Equal(t, "version", stand.Row[stand.Account](t, db, 1).Version, 2)
		stand.Must(t, db.Save(&whole).Error)
		stand.Equal(t, "the whole row is known", whole.Version, 3)

		stand.Must(t, db.Create(&visited{ID: 1, Name: "a"}).Error)
		partly := visited{ID: 1, Name: "b"}
		stand.Must(t, quiet.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"name"})}).Create(&partly).Error)
		stand.Equal(t, "version", stand.Row[visited](t, db, 1).LockVersion, 0)
		stand.Equal(t, "the struct is the row", partly, stand.Row[visited](t, db, 1))

		if err := quiet.Clauses(clause.OnConflict{UpdateAll: true}).Create(&whole).Error; err == nil {
			t.Error("an upsert of a struct that was read cannot be told from an insert")
		}
	})
}

// TestR25_WithoutVersions: the whole database can be left alone, and a statement that asks all the same is told.
func TestR25_WithoutVersions(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New(gormlock.WithoutVersions())))
	stand.Must(t, db.AutoMigrate(&stand.Account{}))
	a := stand.Made(t, db, stand.Account{Balance: 1})
	stale := a
	stand.Must(t, db.Model(&a).Update("balance", 2).Error)
	stand.Must(t, db.Model(&stale).Update("balance", 3).Error)
	stand.Equal(t, "version", stand.Row[stand.Account](t, db, a.ID).Version, a.Version)
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
	db, a := stand.Stored(t, stand.Account{Balance: 1})
	stale := a
	stand.Must(t, db.Model(&a).Update("balance", 2).Error)
	if _, err := gorm.G[stand.Account](db).Updates(ctx, stand.Account{ID: a.ID, Balance: 3, Version: stale.Version}); !errors.Is(err, gormlock.ErrStale) {
		t.Error(err)
	}
	_, err := gorm.G[stand.Account](db, gormlock.IgnoreVersion()).Updates(ctx, stand.Account{ID: a.ID, Balance: 3, Version: stale.Version})
	stand.Must(t, err)
	stand.Equal(t, "ignored, and bumped", stand.Row[stand.Account](t, db, a.ID).Version, 3)
	_, err = gorm.G[stand.Account](db, gormlock.PreserveVersion()).Where("id = ?", a.ID).Update(ctx, "balance", 4)
	stand.Must(t, err)
	stand.Equal(t, "preserved", stand.Row[stand.Account](t, db, a.ID).Version, 3)
	before := stand.Row[stand.Account](t, db, a.ID)
	stand.Must(t, db.Model(&stand.Account{}).Where("id = ?", a.ID).Update("balance", 5).Error)
	if _, err := gorm.G[stand.Account](db, gormlock.IfUnchanged(&before, "balance"), gormlock.IgnoreVersion()).Where("id = ?", a.ID).Update(ctx, "note", "n"); !errors.Is(err, gormlock.ErrStale) {
		t.Errorf("balance changed: %v", err)
	}
	if err := gormlock.Touch(db.Clauses(gormlock.IgnoreVersion()), &stand.Account{ID: a.ID}); err != nil {
		t.Error(err)
	}
}
