package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/work"
)

// Task is a job.
type Task struct {
	work.Job
	Payload string
}

// Receipt is the effect of a task, stored with its completion or not at all.
type Receipt struct {
	ID     int64
	TaskID int64
	Worker string // the process
}

// migrate makes the tables.
func migrate(db *gorm.DB) error {
	return errors.Join(work.Migrate(db, &Task{}), db.AutoMigrate(&Receipt{}))
}

// enqueue adds tasks in several transactions, as an application would, one of which is rolled back.
func enqueue(db *gorm.DB, n int) error {
	const perTransaction = 250
	for first := 0; first < n; first += perTransaction {
		err := db.Transaction(func(tx *gorm.DB) error {
			var tasks []*Task
			for i := first; i < min(n, first+perTransaction); i++ {
				queue := []string{"mail", "images"}[i%2]
				tasks = append(tasks, &Task{Job: work.Job{Queue: queue, Priority: i % 3, MaxAttempts: 5}, Payload: payload(i)})
			}
			return work.Enqueue(tx, tasks...)
		})
		if err != nil {
			return err
		}
	}
	changedMyMind := errors.New("the order was not placed after all")
	err := db.Transaction(func(tx *gorm.DB) error {
		return errors.Join(work.Enqueue(tx, &Task{Payload: "never to be seen"}), changedMyMind)
	})
	if errors.Is(err, changedMyMind) {
		return nil
	}
	return err
}

// payload says how the work will go: every tenth task fails once, every hundredth always.
func payload(i int) string {
	switch {
	case i%100 == 99:
		return fmt.Sprint("poison ", i)
	case i%10 == 9:
		return fmt.Sprint("flaky ", i)
	default:
		return fmt.Sprint("work ", i)
	}
}

// worker works until ctx ends.
func worker(ctx context.Context, db *gorm.DB, name string, o options) error {
	w, err := work.New(db, func(ctx context.Context, t *Task) error {
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // where the work would be done
		if strings.HasPrefix(t.Payload, "poison") || strings.HasPrefix(t.Payload, "flaky") && t.Attempts == 1 {
			return errors.New("cannot " + t.Payload)
		}
		return gormlock.Transaction(db.WithContext(ctx), func(tx *gorm.DB) error {
			if err := tx.Create(&Receipt{TaskID: t.ID, Worker: name}).Error; err != nil {
				return err
			}
			return work.Complete(tx, t) // gormlock.ErrStale: somebody else has it now, and the receipt is rolled back
		})
	}, work.Workers(o.goroutines), work.Lease(o.lease), work.Poll(100*time.Millisecond),
		work.Backoff(func(attempt int) time.Duration { return 50 * time.Millisecond << min(attempt, 6) }))
	if err != nil {
		return err
	}
	return w.Run(ctx)
}
