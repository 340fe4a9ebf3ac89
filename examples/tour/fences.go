package main

import (
	"errors"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
)

// fences issues numbers in transactions, with no lease.
func fences(s *stage) error {
	s.say("A transaction that takes a lock can issue the next number of it, without a lease:")
	s.code(`token, err := gormlock.FenceFor(tx, key) // the lock, and its number
err = tx.Clauses(gormlock.Fence(token)).Save(&report).Error`)
	pool, err := s.db.DB()
	if err != nil {
		return err
	}
	if err := errors.Join(fence.Migrate(s.ctx, pool), s.db.AutoMigrate(&Report{})); err != nil {
		return err
	}
	key := s.key("summary")
	report := Report{Body: "draft"}
	write := func(body string) (token fence.Token, err error) {
		err = gormlock.Transaction(s.db, func(tx *gorm.DB) error {
			if token, err = gormlock.FenceFor(tx, key); err != nil {
				return err
			}
			report.Body = body
			return tx.Clauses(gormlock.Fence(token)).Save(&report).Error
		})
		return token, err
	}
	early, err := write("first")
	if err != nil {
		return err
	}
	late, err := write("second")
	if err != nil {
		return err
	}
	s.check(late.Number > early.Number && report.Fence == late.Number, "two transactions, two numbers; the row holds the greater one")
	err = s.db.Save(&report).Error
	s.check(errors.Is(err, gormlock.ErrFenceMissing), "who brings none writes nothing: %v", err)
	s.code(`db.Clauses(gormlock.IgnoreFence()).Save(&report) // somebody who repairs it`)
	err = errors.Join(s.db.Clauses(gormlock.IgnoreFence()).Save(&report).Error, s.db.First(&report).Error)
	s.check(err == nil && report.Fence == late.Number, "unless it says so; the row keeps its number")

	s.say("A model without a fence, or raw SQL, is guarded with the whole transaction:")
	s.code(`gormlock.FenceTx(tx, token) // first; no later number is issued until tx has ended
tx.Exec("UPDATE accounts SET balance = 0 WHERE id = ?", id)`)
	a, err := s.account(7)
	if err != nil {
		return err
	}
	empty := func(token fence.Token) error {
		return s.db.Transaction(func(tx *gorm.DB) error {
			if err := gormlock.FenceTx(tx, token); err != nil {
				return err
			}
			return tx.Exec("UPDATE accounts SET balance = 0 WHERE id = ?", a.ID).Error
		})
	}
	err = empty(early)
	if failed := s.db.First(&a).Error; failed != nil {
		return failed
	}
	s.check(errors.Is(err, gormlock.ErrFenced) && a.Balance == 7, "the earlier holder, and the balance is %d: %v", a.Balance, err)
	if err := errors.Join(empty(late), s.db.First(&a).Error); err != nil {
		return err
	}
	s.check(a.Balance == 0, "the latest one, and the balance is %d", a.Balance)
	return nil
}
