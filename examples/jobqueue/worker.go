package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"
)

// Run is one finished attempt of a job, kept to be counted at the end. An attempt that was cut short leaves none.
type Run struct {
	JobID   int64  `gorm:"primaryKey;autoIncrement:false"`
	Attempt int    `gorm:"primaryKey;autoIncrement:false"`
	Worker  string // the process
	Outcome string // done, retry or dead
}

const runsTable = `
CREATE TABLE runs (job_id bigint, attempt int, worker text NOT NULL, outcome text NOT NULL, PRIMARY KEY (job_id, attempt));
CREATE UNIQUE INDEX runs_done_once ON runs (job_id) WHERE outcome = 'done'; -- the database itself would refuse a second`

// worker is one process with several goroutines that work.
type worker struct {
	queue  Queue
	name   string   // for people: w1
	queues []string // which jobs it takes
	batch  int
	poll   time.Duration // how long a job may wait if its notification is lost
	wake   chan struct{}
}

// run works until ctx ends: what is being worked on then is finished first.
func (w *worker) run(ctx context.Context, listen *pgx.Conn, goroutines int) error {
	w.wake = make(chan struct{}, goroutines)
	var all sync.WaitGroup
	errs := make(chan error, goroutines+2)
	running, stop := context.WithCancel(ctx)
	defer stop()
	start := func(job func(context.Context) error) {
		all.Go(func() {
			if err := job(running); err != nil && running.Err() == nil {
				errs <- err
				stop()
			}
		})
	}
	start(func(ctx context.Context) error { return w.listen(ctx, listen) })
	start(w.bury)
	for i := range goroutines {
		// The claims of one goroutine are told apart from those of every other that ever was.
		claimer := fmt.Sprintf("%s pid %d.%d started %d", w.name, os.Getpid(), i, time.Now().UnixNano())
		start(func(ctx context.Context) error { return w.work(ctx, claimer) })
	}
	all.Wait()
	close(errs)
	return <-errs
}

// work claims and works off batches, and sleeps where there is nothing to do.
func (w *worker) work(ctx context.Context, claimer string) error {
	for ctx.Err() == nil {
		jobs, err := w.queue.Claim(ctx, claimer, w.batch, w.queues...)
		if err != nil {
			return err
		}
		if len(jobs) == 0 {
			w.sleep(ctx)
			continue
		}
		if err := w.workOff(ctx, claimer, jobs); err != nil {
			return err
		}
	}
	return nil
}

// workOff works on a batch, whose lease is renewed meanwhile. It ends the batch also when ctx ends.
func (w *worker) workOff(ctx context.Context, claimer string, jobs []Job) error {
	ctx, done := context.WithCancel(context.WithoutCancel(ctx))
	var renewing sync.WaitGroup
	renewing.Go(func() { w.renew(ctx, claimer) })
	defer renewing.Wait()
	defer done()
	for i := range jobs {
		job := &jobs[i]
		err := handle(job)
		if err == nil {
			err = w.queue.Complete(ctx, job, w.log(job, "done"))
		} else {
			outcome := "retry"
			if job.Attempts >= job.MaxAttempts {
				outcome = "dead"
			}
			err = w.queue.Fail(ctx, job, err, w.log(job, outcome))
		}
		if err != nil && !takenOver(err) {
			return err
		}
	}
	return nil
}

func (w *worker) log(job *Job, outcome string) func(tx *gorm.DB) error {
	return func(tx *gorm.DB) error {
		return tx.Create(&Run{job.ID, job.Attempts, w.name, outcome}).Error
	}
}

// handle is where the work would be done. A payload says how often it fails.
func handle(job *Job) error {
	time.Sleep(2 * time.Millisecond) //nolint:forbidigo // this is the work
	if strings.HasPrefix(job.Payload, "poison") || strings.HasPrefix(job.Payload, "flaky") && job.Attempts == 1 {
		return errors.New("cannot " + job.Payload)
	}
	return nil
}

// renew renews in thirds of the lease. A renewal that fails is no reason to stop: if it goes on failing the jobs are
// taken over, and completing them is refused.
func (w *worker) renew(ctx context.Context, claimer string) {
	tick := time.NewTicker(w.queue.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = w.queue.Renew(ctx, claimer)
		}
	}
}

// bury gives up now and then what died in its last attempt.
func (w *worker) bury(ctx context.Context) error {
	tick := time.NewTicker(w.queue.Lease)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := w.queue.Bury(ctx); err != nil {
				return err
			}
		}
	}
}

// sleep waits for a notification, and no longer than poll: retries and leases end without one.
func (w *worker) sleep(ctx context.Context) {
	timer := time.NewTimer(w.poll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-w.wake:
	case <-timer.C:
	}
}

// listen wakes all goroutines when something was enqueued, on a connection of its own: one behind a pool could be given
// to somebody else between two notifications.
func (w *worker) listen(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{w.queue.Channel}.Sanitize()); err != nil {
		return err
	}
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
		for range cap(w.wake) {
			select {
			case w.wake <- struct{}{}:
			default:
			}
		}
	}
}
