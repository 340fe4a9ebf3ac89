package gormlock

import (
	"context"
	"sync/atomic"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/advisory"
)

// lockAtBegin hands the statement's locks to the transaction that GORM is about to begin for it, so that they travel
// with its BEGIN. It reports whether the statement has locks.
func lockAtBegin(db *gorm.DB) bool {
	stmt := db.Statement
	request := xactLockOn(stmt)
	if request == nil {
		return false
	}
	if db.Error == nil && !db.DryRun && !db.SkipDefaultTransaction && isPostgres(db) && transactionOf(stmt) == nil {
		stmt.Context = carry(stmt.Context, request.Within(pluginOf(db).defaultTimeout))
	}
	return true
}

// lockingContext carries a request from a statement to the BEGIN of its transaction, and to no other.
type lockingContext struct {
	context.Context
	request *advisory.Request
	spent   atomic.Bool
}

type lockingKey struct{}

func (c *lockingContext) Value(key any) any {
	if key == (lockingKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func carry(ctx context.Context, request *advisory.Request) context.Context {
	return &lockingContext{Context: ctx, request: request}
}

// spend takes the request from the ctx, also where somebody has wrapped it meanwhile: hooks begin transactions too.
func spend(ctx context.Context) context.Context {
	if carrying, ok := ctx.Value(lockingKey{}).(*lockingContext); ok {
		carrying.spent.Store(true)
	}
	if carrying, ok := ctx.(*lockingContext); ok {
		return carrying.Context
	}
	return ctx
}

func requestIn(ctx context.Context) *advisory.Request {
	carrying, ok := ctx.Value(lockingKey{}).(*lockingContext)
	if !ok || carrying.spent.Load() {
		return nil
	}
	return carrying.request
}
