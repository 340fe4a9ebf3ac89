// Package stores has generic repositories behind generic interfaces, and a unit of work.
package stores

import (
	"context"

	"github.com/gormlock/gormlock"
	"gorm.io/gorm"
)

type Account struct{ ID, Balance int64 }

// Store has one implementation, which is as generic as it is.
type Store[T any] interface {
	Save(ctx context.Context, v *T) error
}

type store[T any] struct{ db *gorm.DB }

func (s store[T]) Save(ctx context.Context, v *T) error { return s.db.WithContext(ctx).Save(v).Error }

func newStore[T any](db *gorm.DB) Store[T] { return store[T]{db} }

func generic(ctx context.Context, db *gorm.DB) error {
	s := newStore[Account](db)
	return db.Transaction(func(tx *gorm.DB) error {
		if err := newStore[Account](tx).Save(ctx, &Account{}); err != nil {
			return err
		}
		return s.Save(ctx, &Account{}) // want `Save runs statements on the db from outside`
	})
}

// unitOfWork hands a copy of itself to its function, made for the transaction.
type unitOfWork struct {
	db       *gorm.DB
	accounts Store[Account]
}

func (u *unitOfWork) do(ctx context.Context, fn func(u *unitOfWork) error) error {
	return gormlock.Transaction(u.db.WithContext(ctx), func(tx *gorm.DB) error {
		return fn(&unitOfWork{tx, newStore[Account](tx)})
	})
}

func unit(ctx context.Context, u *unitOfWork) error {
	err := u.do(ctx, func(u *unitOfWork) error { return u.accounts.Save(ctx, &Account{}) })
	if err != nil {
		return err
	}
	return u.do(ctx, func(tx *unitOfWork) error {
		if err := tx.db.Create(&Account{}).Error; err != nil {
			return err
		}
		u.db.Create(&Account{})                 // want `Create runs on the db from outside`
		return u.accounts.Save(ctx, &Account{}) // want `Save runs statements on the db from outside`
	})
}

// Cache has an implementation for some types only, and is nobody's in particular.
type Cache[T any] interface {
	Put(v *T) error
}

type cache[T any] struct{ db *gorm.DB }

func (c cache[T]) Put(v *T) error { return c.db.Save(v).Error }

type accountCache struct{}

func (accountCache) Put(*Account) error { return nil }

func cached(db *gorm.DB, c Cache[Account], own struct{ db *gorm.DB }) error {
	return own.db.Transaction(func(tx *gorm.DB) error { return c.Put(&Account{}) })
}
