package main

import (
	"errors"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lockkey"
)

func refusals(s *stage) error {
	s.say("A lock that would protect nothing, or is not there at all, is the worst kind: the program looks " +
		"right. Each of these executes nothing and says so:")
	if err := s.db.AutoMigrate(&Order{}); err != nil {
		return err
	}
	without, err := s.connect(s.config)
	if err != nil {
		return err
	}
	lock := gormlock.WithXactLock(s.key("order"))
	for _, refused := range []struct {
		code string
		do   func() error
		want error
	}{
		{
			`db.Scopes(lock).First(&order)                              // no transaction: gone before the row is read`,
			func() error { return s.db.Scopes(lock).First(&Order{}).Error },
			gormlock.ErrNoTransaction,
		}, {
			`db.Session(&gorm.Session{SkipDefaultTransaction: true}).Scopes(lock).Create(&order)`,
			func() error {
				return s.db.Session(&gorm.Session{SkipDefaultTransaction: true}).Scopes(lock).Create(&Order{}).Error
			},
			gormlock.ErrNoTransaction,
		}, {
			`dbWithoutThePlugin.Scopes(lock).Create(&order)`,
			func() error { return without.Scopes(lock).Create(&Order{}).Error },
			gormlock.ErrNotInstalled,
		}, {
			`tx.Where("id IN (?)", tx.Scopes(lock).Model(&Order{}).Select("id")).Delete(&Order{})`,
			func() error {
				return s.db.Transaction(func(tx *gorm.DB) error {
					//gormlockvet:ignore dropped this is the refusal that is shown
					return tx.Where("id IN (?)", tx.Scopes(lock).Model(&Order{}).Select("id")).Delete(&Order{}).Error
				})
			},
			gormlock.ErrSubQuery,
		}, {
			`db.Scopes(gormlock.WithXactLock(gormlock.Key(&order))).Create(&order)`,
			func() error { return s.db.Scopes(gormlock.WithXactLock(gormlock.Key(&Order{}))).Create(&Order{}).Error },
			lockkey.ErrInvalid,
		}, {
			`db.Scopes(gormlock.WithXactLock(key, gormlock.Timeout(0))).Create(&order)`,
			func() error {
				return s.db.Scopes(gormlock.WithXactLock(s.key("order"), gormlock.Timeout(0))).Create(&Order{}).Error
			},
			gormlock.ErrOption,
		},
	} {
		s.code(refused.code)
		err := refused.do()
		s.check(errors.Is(err, refused.want), "%v", err)
	}
	var orders int64
	if err := s.db.Model(&Order{}).Count(&orders).Error; err != nil {
		return err
	}
	s.check(orders == 0, "and the table has %d rows", orders)
	pool, err := without.DB()
	if err != nil {
		return err
	}
	return pool.Close()
}

// Order is never stored.
type Order struct{ ID int64 }
