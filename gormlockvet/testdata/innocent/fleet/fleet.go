// Package fleet uses the clauses of gormlock in all their places.
package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lockkey"
	"gorm.io/gorm"
)

type Truck struct {
	gorm.Model
	Place   string
	Load    int
	Version int64 `gorm:"default:1" gormlock:"version"`
}

type Base[K comparable] struct {
	ID      K
	Version int64 `gormlock:"version"`
}

type Driver struct {
	Base[string]
	Name string
}

type Fleet struct {
	db  *gorm.DB
	own func(*gorm.DB) *gorm.DB
}

func truckKey(id uint) lockkey.Key { return gormlock.Key("truck", id) }

func (f *Fleet) Drive(ctx context.Context, id uint, place string) error {
	scope := gormlock.WithXactLock(truckKey(id), gormlock.Timeout(time.Second))
	err := f.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		var truck Truck
		if err := tx.Scopes(scope, f.own).First(&truck, id).Error; err != nil {
			return err
		}
		truck.Place = place
		return tx.Save(&truck).Error
	})
	if errors.Is(err, gormlock.ErrStale) {
		return f.Drive(ctx, id, place)
	}
	return err
}

func (f *Fleet) Nearest(ctx context.Context, place string) (Truck, error) {
	return gorm.G[Truck](f.db, gormlock.SkipLocked()).Where("place = ?", place).First(ctx)
}

func (f *Fleet) Form(ctx context.Context, id uint, version int64, form map[string]any) error {
	n, err := gorm.G[Truck](f.db, gormlock.ExpectVersion(version)).Where("id = ?", id).Update(ctx, "place", form["place"])
	if err == nil && n == 0 {
		return gorm.ErrRecordNotFound
	}
	return err
}

func (f *Fleet) Force(ctx context.Context, truck *Truck) error {
	return f.db.WithContext(ctx).Clauses(gormlock.IgnoreVersion()).Save(truck).Error
}

func (f *Fleet) Unload(ctx context.Context, truck *Truck) error {
	before := *truck
	truck.Load = 0
	return f.db.WithContext(ctx).Clauses(gormlock.IfUnchanged(&before, "load")).Save(truck).Error
}

func (f *Fleet) Waiting(ctx context.Context, tx *gorm.DB) (ids []uint, err error) {
	locked := tx.Scopes(gormlock.WithRowLock(gormlock.ForShare)).Model(&Truck{}).Select("id")
	err = tx.WithContext(ctx).Model(&Truck{}).Where("id IN (?)", locked).Pluck("id", &ids).Error
	return ids, err
}

func (f *Fleet) Hire(ctx context.Context, driver *Driver) error {
	tx := f.db.WithContext(ctx).Begin()
	if tx.Error != nil {
		return tx.Error
	}
	defer tx.Rollback()
	if err := gormlock.AcquireXactLock(tx, []lockkey.Key{gormlock.Key("drivers")}, gormlock.Try()); err != nil {
		return err
	}
	if err := tx.Create(driver).Error; err != nil {
		return err
	}
	if err := tx.Commit().Error; err != nil {
		return err
	}
	time.Sleep(time.Millisecond)
	return nil
}

func (f *Fleet) Retry(ctx context.Context, id uint) (load int, err error) {
	var attempts int
	err = gormlock.Transaction(f.db.WithContext(ctx), func(tx *gorm.DB) error {
		attempts++
		truck := Truck{Model: gorm.Model{ID: id}}
		if err := gormlock.LockRow(tx, &truck); err != nil {
			return err
		}
		truck.Load++
		load = truck.Load
		return tx.Save(&truck).Error
	}, gormlock.Attempts(3), gormlock.OnRetry(func(int, error) {}))
	return load, err
}
