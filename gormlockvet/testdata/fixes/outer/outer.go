package outer

import (
	"context"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lease"
	"gorm.io/gorm"
)

type Account struct{ ID int64 }

type service struct {
	db     *gorm.DB
	leases *lease.Manager
}

func (s *service) save(ctx context.Context, a *Account) error {
	err := s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := s.db.WithContext(ctx).Model(a).Update("id", 1).Error; err != nil { // want `outer: `
			return err
		}
		if _, err := gorm.G[Account](s.db).First(ctx); err != nil { // want `outer: `
			return err
		}
		return gormlock.LockRow(s.db, a) // want `outer: `
	})
	if err != nil {
		return err
	}
	// Without a name there is nothing to use.
	return s.db.Transaction(func(*gorm.DB) error {
		return s.db.Create(a).Error // want `outer: `
	})
}

func (s *service) lead(ctx context.Context, a *Account) error {
	return s.leases.Do(ctx, gormlock.Key("lead"), time.Minute, func(held context.Context) error {
		return s.save(ctx, a) // want `outer: `
	})
}
