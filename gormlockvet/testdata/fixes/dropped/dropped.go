package dropped

import (
	"context"

	"github.com/gormlock/gormlock"
	"gorm.io/gorm"
)

type Account struct{ ID int64 }

func find(ctx context.Context, tx *gorm.DB, id int64) {
	key := gormlock.Key("account", id)
	_, _ = gorm.G[Account](tx.Scopes(gormlock.WithXactLock(key, gormlock.Try()))).First(ctx)             // want `dropped: `
	_, _ = gorm.G[Account](tx.Scopes(gormlock.WithSkipLocked(), gormlock.WithXactLock(key))).First(ctx)  // want `dropped: `
	_, _ = gorm.G[Account](tx.WithContext(ctx).Clauses(gormlock.RowLock(gormlock.ForUpdate))).First(ctx) // want `dropped: `
	_, _ = gorm.G[Account](tx.Where("id = 1").Scopes(func(q *gorm.DB) *gorm.DB {                         // want `dropped: `
		return q.Scopes(gormlock.WithXactLock(key))
	})).First(ctx)
}
