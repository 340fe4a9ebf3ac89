// Package jobs runs work under leases and session locks.
package jobs

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/sessionlock"
	"gorm.io/gorm"
)

type Job struct {
	ID       int64
	State    string
	Attempts int
	Report   string
}

type Report struct {
	ID    int64
	Body  string
	Fence int64 `gorm:"not null;default:0" gormlock:"fence,key=report"`
}

type Scheduler struct {
	db     *gorm.DB
	leases *lease.Manager
	locks  *sessionlock.Manager
	done   []int64
}

func (s *Scheduler) Nightly(ctx context.Context) error {
	return s.leases.Do(ctx, gormlock.Key("nightly"), time.Minute, func(leaseCtx context.Context) error {
		jobs, err := gormlock.Claim[Job](s.db.WithContext(ctx), 10, map[string]any{"state": "running"}) // misuse: outer
		if err != nil {
			return err
		}
		for i := range jobs {
			if err := s.run(ctx, &jobs[i]); err != nil { // misuse: outer
				return err
			}
		}
		return leaseCtx.Err()
	})
}

func (s *Scheduler) run(ctx context.Context, job *Job) error {
	return s.db.WithContext(ctx).Model(job).Update("state", "done").Error
}

func (s *Scheduler) Reports(ctx context.Context) {
	s.leases.Do(ctx, gormlock.Key("report", 1), time.Minute, func(ctx context.Context) error { // misuse: ignored
		return s.db.WithContext(ctx).Exec("UPDATE reports SET body = ? WHERE id = ?", "done", 1).Error // misuse: around
	})
}

func (s *Scheduler) Clean(ctx context.Context) error {
	_, err := s.db.ConnPool.ExecContext(ctx, "DELETE FROM jobs WHERE state = 'done'")
	return err
}

func (s *Scheduler) Single(ctx context.Context) error {
	l, _ := s.locks.TryAcquire(ctx, gormlock.Key("single")) // misuse: ignored
	defer func() { _ = l.Release(context.WithoutCancel(ctx)) }()
	jobs, _ := gormlock.Claim[Job](s.db, 1, map[string]any{"state": "running"}) // misuse: ignored
	return s.run(ctx, &jobs[0])
}

func (s *Scheduler) Handover(ctx context.Context, id int64) error {
	var r Report
	if err := s.db.WithContext(ctx).First(&r, id).Error; err != nil {
		return err
	}
	l, err := s.locks.Acquire(ctx, gormlock.Key("report", id), sessionlock.Fenced())
	if err != nil {
		return err
	}
	defer func() { _ = l.Release(context.WithoutCancel(ctx)) }()
	r.Body += "!"
	ctx = fence.NewContext(ctx, l.Token())
	return s.db.WithContext(ctx).Save(&r).Error // misuse: old
}

func (s *Scheduler) Finish(ctx context.Context, ids []int64) error {
	file, err := os.Create("finished")
	if err != nil {
		return err
	}
	defer file.Close()
	return gormlock.Transaction(s.db.WithContext(ctx), func(tx *gorm.DB) error {
		for _, id := range ids {
			if err := tx.Model(&Job{}).Where("id = ?", id).Update("state", "done").Error; err != nil {
				return err
			}
			if _, err := file.WriteString(fmt.Sprintln(id)); err != nil { // misuse: retried
				return err
			}
			s.done = append(s.done, id) // misuse: retried
		}
		return os.Remove("pending") // misuse: retried
	}, gormlock.Attempts(3))
}

func (s *Scheduler) Locked(ctx context.Context) error {
	return s.locks.Do(ctx, gormlock.Key("locked"), func(held context.Context) error {
		deadline, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		return s.run(deadline, &Job{ID: 1}) // misuse: outer
	})
}

func (s *Scheduler) Release(ctx context.Context, l *lease.Lease) {
	l.Release(ctx) // misuse: ignored
}
