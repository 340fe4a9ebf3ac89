package main

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/work"
)

// Letter is a job.
type Letter struct {
	work.Job
	To string
}

// Posted is its effect.
type Posted struct {
	ID       int64
	LetterID int64
}

func jobs(s *stage) error {
	s.say("Package work is the loop around Claim. A job is a row, stored with what asks for it:")
	s.code(`work.Enqueue(tx, &Letter{To: "ann"}, &Letter{To: "bob"})`)
	if err := errors.Join(work.Migrate(s.db, &Letter{}), s.db.AutoMigrate(&Posted{})); err != nil {
		return err
	}
	boom := errors.New("boom")
	rolledBack := s.db.Transaction(func(tx *gorm.DB) error { return errors.Join(work.Enqueue(tx, &Letter{To: "nobody"}), boom) })
	stored := s.db.Transaction(func(tx *gorm.DB) error { return work.Enqueue(tx, &Letter{To: "ann"}, &Letter{To: "bob"}) })
	if !errors.Is(rolledBack, boom) || stored != nil {
		return errors.Join(rolledBack, stored)
	}
	s.say("and done in the transaction of its effect. What fails is tried again:")
	s.code(`return work.Complete(tx, letter)`)
	var failed bool
	w, err := work.New(s.db, func(ctx context.Context, l *Letter) error {
		if l.To == "bob" && !failed {
			failed = true
			return work.Later(0, errors.New("no stamps"))
		}
		return gormlock.Transaction(s.db.WithContext(ctx), func(tx *gorm.DB) error {
			return errors.Join(tx.Create(&Posted{LetterID: l.ID}).Error, work.Complete(tx, l))
		})
	}, work.Workers(1))
	if err != nil {
		return err
	}
	n, err := w.Drain(s.ctx)
	if err != nil {
		return err
	}
	var posted int64
	if err := s.db.Model(&Posted{}).Count(&posted).Error; err != nil {
		return err
	}
	s.check(n == 3 && posted == 2, "%d attempts, %d letters posted: one was tried again, and the one that was rolled back was never there", n, posted)
	return nil
}
