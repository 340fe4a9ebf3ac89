package main

import (
	"errors"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/lockkey"
)

// plainTransaction takes locks in transactions of database/sql.
func plainTransaction(s *stage) error {
	s.say("Code without GORM takes the same locks on any *sql.Tx:")
	s.code(`advisory.Acquire(ctx, tx, []lockkey.Key{account, ledger}, advisory.Timeout(50*time.Millisecond)) // both, or none`)
	account, ledger := s.key("account"), s.key("ledger")
	both := []lockkey.Key{account, ledger}
	tx, err := s.outside.BeginTx(s.ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing is left to do after a commit
	err = advisory.Acquire(s.ctx, tx, both)
	refused := s.db.Transaction(try(account))
	s.check(err == nil && errors.Is(refused, gormlock.ErrNotAcquired), "it holds both, and GORM is told: %v", refused)
	if err := tx.Commit(); err != nil {
		return err
	}

	release, err := s.hold(ledger)
	if err != nil {
		return err
	}
	next, err := s.outside.BeginTx(s.ctx, nil)
	if err != nil {
		return errors.Join(err, release())
	}
	defer func() { _ = next.Rollback() }() // nothing is left to do after a commit
	err = advisory.Acquire(s.ctx, next, both, advisory.Timeout(50*time.Millisecond))
	free := s.db.Transaction(try(account))
	s.check(errors.Is(err, advisory.ErrLockTimeout) && free == nil, "one of the two is not to be had, so it holds none: %v", err)
	err = errors.Join(release(), advisory.Acquire(s.ctx, next, both))
	s.check(err == nil, "its transaction is as good as before, and now gets both")
	return next.Commit()
}
