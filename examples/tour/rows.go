package main

import (
	"errors"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

func rowLocks(s *stage) error {
	s.say("A row that exists can be locked itself. That stops every writer, also one that knows nothing of gormlock:")
	s.code(`tx.Scopes(gormlock.WithRowLock(gormlock.ForNoKeyUpdate)).First(&a, id)`)
	a, err := s.account(1)
	if err != nil {
		return err
	}
	tx := s.db.Begin()
	err = tx.Scopes(gormlock.WithRowLock(gormlock.ForNoKeyUpdate)).First(&Account{}, a.ID).Error
	refused := s.updatePlainly(a.ID)
	var code interface{ SQLState() string }
	s.check(err == nil && errors.As(refused, &code) && code.SQLState() == "55P03", "an UPDATE in plain SQL waits, and here gives up: %v", refused)
	err = s.db.Transaction(func(tx *gorm.DB) error {
		mine := a
		err := gormlock.LockRow(tx, &mine, gormlock.Try())
		s.check(errors.Is(err, gormlock.ErrNotAcquired), "LockRow with Try: %v", err)
		err = gormlock.LockRow(tx, &mine, gormlock.Timeout(50*time.Millisecond))
		s.check(errors.Is(err, gormlock.ErrLockTimeout), "with Timeout: %v", err)
		return nil
	})
	return errors.Join(err, tx.Commit().Error)
}

// updatePlainly changes the account in plain SQL, and does not wait for long.
func (s *stage) updatePlainly(id int64) error {
	tx, err := s.outside.BeginTx(s.ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing is left to do after a commit
	if _, err := tx.ExecContext(s.ctx, "set local lock_timeout = '50ms'"); err != nil {
		return err
	}
	if _, err := tx.ExecContext(s.ctx, "update accounts set balance = 2 where id = $1", id); err != nil {
		return err
	}
	return tx.Commit()
}

// Job is work that several workers look for.
type Job struct {
	ID    int64
	State string
}

func claim(s *stage) error {
	const all, workers, each = 60, 4, 5
	jobs := make([]Job, all)
	for i := range jobs {
		jobs[i].State = "ready"
	}
	if err := errors.Join(s.db.AutoMigrate(&Job{}), s.db.Create(&jobs).Error); err != nil {
		return err
	}
	s.say("%d jobs, %d workers, %d jobs at a time. Reading the next ones and then marking them gives two workers the same:", all, workers, each)
	ready := func(q *gorm.DB) *gorm.DB { return q.Where("state = ?", "ready").Order("id") }
	var one, two []Job
	err := errors.Join(ready(s.db).Limit(each).Find(&one).Error, ready(s.db).Limit(each).Find(&two).Error)
	if err != nil {
		return err
	}
	s.check(one[0].ID == two[0].ID, "read by two workers before either marks: both have job %d", two[0].ID)

	s.code(`gormlock.Claim[Job](db, 5, map[string]any{"state": "running"},
	func(q *gorm.DB) *gorm.DB { return q.Where("state = ?", "ready").Order("id") })`)
	var mu sync.Mutex
	given, calls := map[int64]int{}, 0
	err = together(workers, 1, func() error {
		for {
			mine, err := gormlock.Claim[Job](s.db, each, map[string]any{"state": "running"}, ready)
			if err != nil || len(mine) == 0 {
				return err
			}
			mu.Lock()
			calls++
			for _, job := range mine {
				given[job.ID]++
			}
			mu.Unlock()
		}
	})
	if err != nil {
		return err
	}
	twice := 0
	for _, times := range given {
		if times > 1 {
			twice++
		}
	}
	s.check(len(given) == all && twice == 0, "%d jobs were handed out in %d claims, %d of them twice", len(given), calls, twice)
	return nil
}
