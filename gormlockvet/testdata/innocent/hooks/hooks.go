// Package hooks has models with hooks, callbacks after the commit, and mocks.
package hooks

import (
	"context"

	"github.com/gormlock/gormlock"
	"gorm.io/gorm"
)

type Invoice struct {
	ID      int64
	Total   int64
	Lines   []Line
	Version int64 `gormlock:"version"`
}

type Line struct {
	ID        int64
	InvoiceID int64
	Amount    int64
}

func (i *Invoice) BeforeSave(tx *gorm.DB) error {
	return tx.Session(&gorm.Session{NewDB: true}).Where("amount = 0").Delete(&Line{}).Error
}

func (i *Invoice) AfterCreate(tx *gorm.DB) error {
	return tx.Model(i).Update("total", i.Total).Error
}

type Store interface {
	Save(ctx context.Context, i *Invoice) error
	WithTx(tx *gorm.DB) Store
}

type Service struct {
	db    *gorm.DB
	store Store
	after []func()
}

func (s *Service) OnCommit(f func()) { s.after = append(s.after, f) }

func (s *Service) Save(ctx context.Context, i *Invoice) error {
	err := s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		s.OnCommit(func() { s.db.Create(&Line{InvoiceID: i.ID}) })
		store := s.store.WithTx(tx)
		return store.Save(ctx, i)
	})
	if err != nil {
		return err
	}
	for _, f := range s.after {
		f()
	}
	return nil
}

func (s *Service) Touch(ctx context.Context, i *Invoice) error {
	return gormlock.Transaction(s.db.WithContext(ctx), func(tx *gorm.DB) error {
		for n := range i.Lines {
			i.Lines[n].InvoiceID = i.ID
			if err := tx.Save(&i.Lines[n]).Error; err != nil {
				return err
			}
		}
		return gormlock.Touch(tx, i)
	}, gormlock.Attempts(2))
}

func Paginate(page int) func(*gorm.DB) *gorm.DB {
	return func(q *gorm.DB) *gorm.DB { return q.Offset(page * 10).Limit(10) }
}

func (s *Service) List(ctx context.Context, page int) (all []Invoice, err error) {
	err = s.db.WithContext(ctx).Scopes(Paginate(page)).Find(&all).Error
	return all, err
}
