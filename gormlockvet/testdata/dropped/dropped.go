package dropped

import (
	"context"

	"github.com/gormlock/gormlock"
	"gorm.io/gorm"
)

type Account struct {
	ID      int64
	Balance int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

var key = gormlock.Key("account", 1)

func generics(ctx context.Context, tx *gorm.DB) {
	_, _ = gorm.G[Account](tx.Scopes(gormlock.WithXactLock(key))).First(ctx)                                // want `dropped: gorm.G starts a new statement and drops the advisory lock`
	_, _ = gorm.G[Account](tx.Clauses(gormlock.RowLock(gormlock.ForUpdate))).First(ctx)                     // want `drops the row lock`
	_, _ = gorm.G[Account](tx.Scopes(gormlock.WithSkipLocked())).Limit(3).Find(ctx)                         // want `drops the row lock`
	_, _ = gorm.G[Account](tx.Clauses(gormlock.ExpectVersion(7))).Where("id = 1").Update(ctx, "balance", 1) // want `drops the version clause`

	locked := tx.WithContext(ctx).Scopes(gormlock.WithXactLock(key))
	_, _ = gorm.G[Account](locked).First(ctx) // want `drops the advisory lock`

	_, _ = gorm.G[Account](lockedBy(tx)).First(ctx)              // want `drops the row lock`
	_, _ = gorm.G[Account](tx.Scopes(forUpdate)).First(ctx)      // want `drops the row lock`
	_, _ = gorm.G[Account](tx.Scopes(accountLock(1))).First(ctx) // want `drops the advisory lock`
	_, _ = gorm.G[Account](tx.Scopes(func(q *gorm.DB) *gorm.DB { // want `drops the row lock`
		return q.Clauses(gormlock.SkipLocked())
	})).First(ctx)
}

func lockedBy(tx *gorm.DB) *gorm.DB {
	return tx.Scopes(gormlock.WithRowLock(gormlock.ForShare))
}

func forUpdate(q *gorm.DB) *gorm.DB { return q.Clauses(gormlock.RowLock(gormlock.ForUpdate)) }

func accountLock(id int64) func(*gorm.DB) *gorm.DB {
	return gormlock.WithXactLock(gormlock.Key("account", id))
}

func parts(tx *gorm.DB) {
	var accounts []Account
	tx.Where("id IN (?)", tx.Scopes(gormlock.WithXactLock(key)).Model(&Account{}).Select("id")).Find(&accounts)               // want `the advisory lock on a part of a statement is never taken`
	tx.Where("id IN (?)", tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Raw("SELECT id FROM accounts")).Find(&accounts) // want `the row lock on a raw sub-query is dropped`
	tx.Where(tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Where("balance > 0")).Find(&accounts)                        // want `the row lock on a group of conditions is dropped`
	tx.Or(tx.Clauses(gormlock.ExpectVersion(3)).Where("balance > 0")).Find(&accounts)                                         // want `the version clause on a part of a statement compares nothing`
	tx.Joins("Owner", tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate))).Find(&accounts)                                    // want `the row lock on the conditions of a join is dropped`

	busy := tx.Scopes(gormlock.WithXactLock(key)).Model(&Account{}).Select("id") // want `the advisory lock on a part of a statement`
	tx.Not("id IN (?)", busy).Find(&accounts)

	short := tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Try())).Model(&Account{}).Select("id") // want `Try or Timeout does not work in a sub-query`
	tx.Table("(?) AS a", short).Find(&accounts)

	tx.Scopes(gormlock.WithXactLock(key)).Session(&gorm.Session{NewDB: true}).Find(&accounts) // want `a Session with NewDB drops the advisory lock`
}

type repo struct{ db *gorm.DB }

func (r repo) unused() error {
	r.db.Scopes(gormlock.WithXactLock(key)) // want `Scopes returns a db that carries the advisory lock, and nobody uses it`
	return r.db.Create(&Account{}).Error
}

func innocent(ctx context.Context, tx *gorm.DB) {
	var accounts []Account
	// The clause goes to gorm.G, or the lock to the statement itself.
	_, _ = gorm.G[Account](tx, gormlock.XactLock(key)).First(ctx)
	_, _ = gorm.G[Account](tx).Scopes(gormlock.RowLock(gormlock.ForUpdate).ModifyStatement).First(ctx)
	_, _ = gorm.G[Account](tx.WithContext(ctx).Debug()).First(ctx)
	// A row lock in a sub-query of GORM's is taken by the statement around it.
	tx.Where("id IN (?)", tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Model(&Account{}).Select("id")).Find(&accounts)
	// The statement around it asks for the lock itself.
	lock := gormlock.WithXactLock(key)
	tx.Scopes(lock).Where("id IN (?)", tx.Scopes(lock).Model(&Account{}).Select("id")).Find(&accounts)
	// Without a lock a part is a part.
	tx.Where(tx.Where("balance > 0").Or("balance < -10")).Find(&accounts)
	tx.Scopes(gormlock.WithXactLock(key)).Session(&gorm.Session{}).Find(&accounts)
}

// scope is a db in the middle of a chain, or may be: it changes in place.
func scope(q *gorm.DB) *gorm.DB {
	q.Scopes(gormlock.WithXactLock(key))
	return q
}

func inPlace(db *gorm.DB) {
	q := db.Where("balance > 0")
	q.Scopes(gormlock.WithXactLock(key))
	var accounts []Account
	q.Find(&accounts)
}
