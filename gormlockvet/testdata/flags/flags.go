package flags

import (
	"context"

	"github.com/gormlock/gormlock"
	"gorm.io/gorm"
)

type Account struct {
	ID      int64
	Version int64 `gormlock:"version"`
}

func save(ctx context.Context, db *gorm.DB, a *Account) error {
	db.Save(a)
	_, err := gorm.G[Account](db.Scopes(gormlock.WithXactLock(gormlock.Key("a")))).First(ctx)
	return err
}
