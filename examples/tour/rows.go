package main

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

func rowLocks(s *stage) error {
	s.say("A row that exists can be locked itself. That stops every writer, also one that does not use gormlock:")
	s.code(`tx.Scopes(gormlock.WithRowLock(gormlock.ForNoKeyUpdate)).First(&a, id)`)
	a, err := s.account(1)
	if err != nil {
		return err
	}
	tx := s.db.Begin()
	err = tx.Scopes(gormlock.WithRowLock(gormlock.ForNoKeyUpdate)).First(&Account{}, a.ID).Error
	refused := s.plainly("update accounts set balance = 2 where id = $1", a.ID)
	s.check(err == nil && gaveUp(refused), "an UPDATE in plain SQL waits, and here gives up: %v", refused)
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

// gaveUp reports whether the error is that of a statement which has waited for a lock long enough.
func gaveUp(err error) bool {
	var code interface{ SQLState() string }
	return errors.As(err, &code) && code.SQLState() == "55P03"
}

// plainly writes in plain SQL, and does not wait for long.
func (s *stage) plainly(query string, args ...any) error {
	tx, err := s.outside.BeginTx(s.ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing is left to do after a commit
	if _, err := tx.ExecContext(s.ctx, "set local lock_timeout = '50ms'"); err != nil {
		return err
	}
	if _, err := tx.ExecContext(s.ctx, query, args...); err != nil {
		return err
	}
	return tx.Commit()
}

// transfers moves money both ways at once.
func transfers(s *stage) error {
	s.say("Money goes from one account to another, and at the same time from that one to the first:")
	one, err := s.account(100)
	if err != nil {
		return err
	}
	two, err := s.account(100)
	if err != nil {
		return err
	}
	first, second := s.db.Begin(), s.db.Begin()
	err = errors.Join(gormlock.LockRow(first, &one), gormlock.LockRow(second, &two))
	there, back := gormlock.LockRow(first, &two, gormlock.Try()), gormlock.LockRow(second, &one, gormlock.Try())
	if err := errors.Join(err, first.Commit().Error, second.Commit().Error); err != nil {
		return err
	}
	s.check(errors.Is(there, gormlock.ErrNotAcquired) && errors.Is(back, gormlock.ErrNotAcquired),
		"one row after the other, each holds what the other wants. Here both only try; waiting, they would deadlock")
	s.say("LockRows takes all of them, in the order of their keys:")
	s.code(`pair := []Account{{ID: from}, {ID: to}}
gormlock.LockRows(tx, &pair) // one statement; it reads them again, and they keep their places`)
	const each = 20
	var turn atomic.Int64
	err = together(2, each, func() error {
		pair := []Account{{ID: one.ID}, {ID: two.ID}}
		if turn.Add(1)%2 == 0 {
			slices.Reverse(pair)
		}
		return s.db.Transaction(func(tx *gorm.DB) error {
			if err := gormlock.LockRows(tx, &pair); err != nil {
				return err
			}
			return errors.Join(
				tx.Model(&pair[0]).Update("balance", pair[0].Balance-1).Error,
				tx.Model(&pair[1]).Update("balance", pair[1].Balance+1).Error)
		})
	})
	s.check(err == nil, "%d transfers, half of them each way, none ended as a deadlock", 2*each)
	if err := errors.Join(s.db.First(&one).Error, s.db.First(&two).Error); err != nil {
		return err
	}
	s.check(one.Balance == 100 && two.Balance == 100, "and none is lost: the balances are %d and %d again", one.Balance, two.Balance)
	return nil
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

// holding lets a worker die while it has jobs.
func holding(s *stage) error {
	jobs := []Job{{State: "short"}, {State: "short"}, {State: "short"}, {State: "short"}}
	if err := errors.Join(s.db.AutoMigrate(&Job{}), s.db.Create(&jobs).Error); err != nil {
		return err
	}
	s.say("Work of milliseconds needs no mark: it is done in the transaction that locks its row, and who comes meanwhile " +
		"passes the row over:")
	s.code(`tx.Scopes(gormlock.WithSkipLocked()).Where("state = ?", "short").Order("id").Limit(2).Find(&jobs)`)
	next := func(tx *gorm.DB) (mine []Job, err error) {
		err = tx.Scopes(gormlock.WithSkipLocked()).Where("state = ?", "short").Order("id").Limit(2).Find(&mine).Error
		return mine, err
	}
	first, second, third := s.db.Begin(), s.db.Begin(), s.db.Begin()
	one, failed := next(first)
	two, err := next(second)
	err = errors.Join(failed, err, first.Rollback().Error)
	again, failed := next(third)
	err = errors.Join(err, failed, second.Commit().Error, third.Commit().Error)
	if err != nil {
		return err
	}
	s.check(slices.Equal(one, jobs[:2]) && slices.Equal(two, jobs[2:]),
		"the first worker has the jobs %v; the second waits for none of them, and has %v", ids(one), ids(two))
	s.check(slices.Equal(again, one), "the first one's transaction ends as that of a dead worker does, and the next one has %v", ids(again))
	return nil
}

func ids(jobs []Job) (all []int64) {
	for _, job := range jobs {
		all = append(all, job.ID)
	}
	return all
}
