package statement

import (
	"context"
	"time"

	"gorm.io/gorm"
)

// backTime is how long the way back to a savepoint may take when the context has ended.
const backTime = 5 * time.Second

// Nested runs fn in a transaction inside of the open one, a savepoint, also if the program has told GORM to make none. If fn fails, or the
// context of db ends before it returns, what fn did is rolled back: the way back is sent although the context has ended. If no transaction is
// open, it has one of its own.
func Nested(db *gorm.DB, fn func(tx *gorm.DB) error) error {
	ctx := db.Statement.Context
	if Transaction(db.Statement) == nil || ctx.Done() == nil {
		return nest(Session(db, gorm.Session{}), fn)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(backTime, cancel) })
	defer stop()
	return nest(Session(db, gorm.Session{Context: longer}), func(tx *gorm.DB) error {
		if err := fn(Session(tx, gorm.Session{Context: ctx})); err != nil {
			return err
		}
		return ctx.Err()
	})
}

// nest has GORM run fn under a savepoint. What it is told of nested transactions is for those in fn.
func nest(db *gorm.DB, fn func(tx *gorm.DB) error) error {
	flat := db.DisableNestedTransaction
	db.DisableNestedTransaction = false
	return db.Transaction(func(tx *gorm.DB) error {
		tx.DisableNestedTransaction = flat
		return fn(tx)
	})
}
