package main

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

// The queue is one table and the functions of this file: take them as they are, or as a start. A job is
//
//	ready ─► claimed until … ─► done
//	  ▲            │    │
//	  │   failed,  │    └─► dead (its last attempt failed, or its worker died in it)
//	  └── or the worker died
//
// A claimed job stays ready in the table, with a lease: when that is over without being renewed, the job is free again
// by itself. Nobody has to find out that a worker is dead.

// jobsTable is the table. The index serves the claim: it holds what is still to be done only, in the order of claiming.
const jobsTable = `
CREATE TABLE jobs (
	id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	queue         text        NOT NULL,
	payload       text        NOT NULL,
	priority      int         NOT NULL DEFAULT 0,
	state         text        NOT NULL DEFAULT 'ready' CHECK (state IN ('ready', 'done', 'dead')),
	run_at        timestamptz NOT NULL DEFAULT now(),
	attempts      int         NOT NULL DEFAULT 0,
	max_attempts  int         NOT NULL DEFAULT 5,
	claimed_by    text        NOT NULL DEFAULT '',
	claimed_until timestamptz,
	last_error    text        NOT NULL DEFAULT '',
	version       bigint      NOT NULL DEFAULT 1
) WITH (fillfactor = 70); -- room for the new versions of a row beside the old one

CREATE INDEX jobs_ready ON jobs (queue, priority DESC, id) WHERE state = 'ready';`

// Job is a row of the queue.
type Job struct {
	ID           int64
	Queue        string
	Payload      string
	Priority     int
	State        string    `gorm:"default:ready"`
	RunAt        time.Time `gorm:"default:now()"`
	Attempts     int
	MaxAttempts  int `gorm:"default:5"`
	ClaimedBy    string
	ClaimedUntil *time.Time `gormlock:"unversioned"` // renewing it leaves the version alone
	LastError    string
	// Version moves with every claim: who was taken over can neither complete the job nor fail it.
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// Queue hands out jobs.
type Queue struct {
	DB      *gorm.DB
	Channel string        // where Enqueue notifies
	Lease   time.Duration // how long a worker that died keeps its jobs
}

// Enqueue adds jobs in the transaction tx, so that a job is there if and only if what asks for it is. Workers hear of it
// when tx commits. One notification, whatever the number of jobs: transactions that notify commit one after the other.
func (q Queue) Enqueue(tx *gorm.DB, jobs ...Job) error {
	if err := tx.CreateInBatches(&jobs, 500).Error; err != nil {
		return err
	}
	return tx.Exec("SELECT pg_notify(?, '')", q.Channel).Error
}

// Claim takes up to n jobs of the named queues for worker, a name that no other process ever had, the most urgent first.
func (q Queue) Claim(ctx context.Context, worker string, n int, queues ...string) ([]Job, error) {
	return gormlock.Claim[Job](q.DB.WithContext(ctx), n,
		map[string]any{
			"claimed_by":    worker,
			"claimed_until": q.leaseEnd(),
			"attempts":      gorm.Expr("attempts + 1"), // counted now: an attempt that kills its worker is one too
		},
		func(tx *gorm.DB) *gorm.DB {
			return tx.Where("queue IN ? AND state = 'ready' AND run_at <= now()", queues).
				Where("claimed_until IS NULL OR claimed_until < now()").
				Where("attempts < max_attempts").
				Order("priority DESC, id")
		})
}

// Renew keeps the jobs of worker from being taken over, for another lease from now.
func (q Queue) Renew(ctx context.Context, worker string) error {
	return q.DB.WithContext(ctx).Model(&Job{}).
		Where("claimed_by = ? AND state = 'ready' AND claimed_until IS NOT NULL", worker).
		Update("claimed_until", q.leaseEnd()).Error
}

// leaseEnd is reckoned by the database: its clock is the only one that all workers share.
func (q Queue) leaseEnd() any {
	return gorm.Expr("clock_timestamp() + make_interval(secs => ?)", q.Lease.Seconds())
}

// Complete marks the job done in the transaction of its effect: both are stored, or neither. gormlock.ErrStale says that
// the job was taken over meanwhile; then the effect is rolled back.
func (q Queue) Complete(ctx context.Context, job *Job, effect func(tx *gorm.DB) error) error {
	return gormlock.Transaction(q.DB.WithContext(ctx), func(tx *gorm.DB) error {
		if err := tx.Model(job).Updates(map[string]any{"state": "done", "claimed_until": nil}).Error; err != nil {
			return err
		}
		return effect(tx)
	})
}

// Fail lets the job wait and be tried again, later after each attempt, or gives it up after its last. Log is stored with
// it. gormlock.ErrStale says that the job was taken over meanwhile.
func (q Queue) Fail(ctx context.Context, job *Job, cause error, log func(tx *gorm.DB) error) error {
	change := map[string]any{"last_error": cause.Error(), "claimed_until": nil}
	if job.Attempts >= job.MaxAttempts {
		change["state"] = "dead"
	} else {
		change["run_at"] = gorm.Expr("clock_timestamp() + make_interval(secs => ?)", backoff(job.Attempts).Seconds())
	}
	return gormlock.Transaction(q.DB.WithContext(ctx), func(tx *gorm.DB) error {
		if err := tx.Model(job).Updates(change).Error; err != nil {
			return err
		}
		return log(tx)
	})
}

// backoff is the pause after the nth attempt.
func backoff(n int) time.Duration {
	return min(50*time.Millisecond<<min(n, 20), time.Hour)
}

// Bury gives up the jobs whose worker died in their last attempt. Somebody calls it now and then.
func (q Queue) Bury(ctx context.Context) error {
	_, err := gormlock.Claim[Job](q.DB.WithContext(ctx), 100,
		map[string]any{"state": "dead", "last_error": "the worker died", "claimed_until": nil},
		func(tx *gorm.DB) *gorm.DB {
			return tx.Where("state = 'ready' AND attempts >= max_attempts AND claimed_until < now()")
		})
	return err
}

// takenOver reports whether err says that another worker has the job now.
func takenOver(err error) bool { return errors.Is(err, gormlock.ErrStale) }
