// Jobqueue is a job queue on one table: enqueued with the transaction that asks for the work, claimed by priority and
// age, retried with growing pauses, given up in the end, taken over when a worker dies.
//
//	go -C examples run ./jobqueue
//
// It starts worker processes, ends one of them with kill -9 in the middle of its work, and shows at the end that every
// job was done once. job.go is all that a program of your own needs of it.
//
// It runs on the server of DATABASE_URL or GORMLOCK_TEST_DSN, in a schema of its own that it drops at the end, or, where
// neither is set, on a throw-away server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/examples/internal/place"
	"github.com/gormlock/gormlock/work"
)

// What a worker process is told by its environment.
const (
	workerName   = "JOBQUEUE_WORKER"
	workerDSN    = "JOBQUEUE_DSN"
	workerSchema = "JOBQUEUE_SCHEMA"
)

// options are how much there is to do, and by whom.
type options struct {
	jobs, processes, goroutines, kills int
	lease                              time.Duration
}

func main() {
	var o options
	flag.IntVar(&o.jobs, "jobs", 3000, "how many jobs")
	flag.IntVar(&o.processes, "processes", 3, "how many worker processes")
	flag.IntVar(&o.goroutines, "goroutines", 4, "how many goroutines work in each")
	flag.IntVar(&o.kills, "kills", 2, "how many workers to kill")
	flag.DurationVar(&o.lease, "lease", time.Second, "how long a dead worker keeps its jobs")
	flag.Parse()
	place.Main("jobqueue", func(ctx context.Context) error { return program(ctx, os.Stdout, o) })
}

// program is the whole program: a worker where the environment says so, else the one that starts the workers.
func program(ctx context.Context, out io.Writer, o options) error {
	name := os.Getenv(workerName)
	if name == "" {
		return show(ctx, out, o)
	}
	p, err := place.At(os.Getenv(workerDSN), os.Getenv(workerSchema))
	if err != nil {
		return err
	}
	return errors.Join(worker(ctx, p.DB, name, o), p.Leave())
}

// show enqueues jobs, has them worked off, and checks the outcome.
func show(ctx context.Context, out io.Writer, o options) (err error) {
	p, err := place.New(ctx, place.Given(), "jobqueue")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Leave()) }()
	if err := migrate(p.DB); err != nil {
		return err
	}
	say(out, "%d jobs, %d processes of %d goroutines, leases of %s\n\n", o.jobs, o.processes, o.goroutines, o.lease)
	workers := &crew{place: p, options: o, out: out}
	defer func() { err = errors.Join(err, workers.end()) }()
	for range o.processes {
		if err := workers.start(); err != nil {
			return err
		}
	}
	if err := enqueue(p.DB.WithContext(ctx), o.jobs); err != nil {
		return err
	}
	began := time.Now()
	if err := watch(ctx, p.DB.WithContext(ctx), out, o, workers); err != nil {
		return err
	}
	return errors.Join(workers.end(), summary(p.DB, out, o, time.Since(began)))
}

// watch shows how it goes until nothing is left to do, and kills workers at the right moments.
func watch(ctx context.Context, db *gorm.DB, out io.Writer, o options, workers *crew) error {
	began, killed := time.Now(), 0
	for {
		queues, err := work.Stats(ctx, db, &Task{})
		if err != nil {
			return err
		}
		var all work.QueueStats
		for _, q := range queues {
			all.Ready, all.Running, all.Later, all.Dead = all.Ready+q.Ready, all.Running+q.Running, all.Later+q.Later, all.Dead+q.Dead
		}
		open := int(all.Ready + all.Running + all.Later)
		say(out, "%5.1f s  ready %5d  running %4d  later %4d  dead %3d\n", time.Since(began).Seconds(), all.Ready, all.Running, all.Later, all.Dead)
		if open == 0 {
			return nil
		}
		// A kill after each of equal parts of the work.
		if killed < o.kills && all.Running > 0 && o.jobs-open > o.jobs*(killed+1)/(o.kills+2) {
			killed++
			if err := workers.killOne(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// crew are the worker processes.
type crew struct {
	place   *place.Place
	options options
	out     io.Writer
	started int
	running []*exec.Cmd
}

// start starts one more process: this program again, told by its environment that it is a worker.
func (c *crew) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c.started++
	p := exec.Command(self, "-goroutines", fmt.Sprint(c.options.goroutines), "-lease", c.options.lease.String()) //nolint:noctx // ended by signals, gently first
	p.Env = append(os.Environ(), fmt.Sprintf("%s=w%d", workerName, c.started), workerDSN+"="+c.place.DSN, workerSchema+"="+c.place.Schema)
	p.Stderr = os.Stderr
	if err := p.Start(); err != nil {
		return err
	}
	c.running = append(c.running, p)
	return nil
}

// killOne kills the oldest process where it stands and starts another.
func (c *crew) killOne() error {
	p := c.running[0]
	c.running = c.running[1:]
	say(c.out, "         kill -9 w%d (pid %d), in the middle of its work\n", c.started-len(c.running), p.Process.Pid)
	if err := p.Process.Kill(); err != nil {
		return err
	}
	_ = p.Wait() // killed
	return c.start()
}

// end lets all processes finish what they work on.
func (c *crew) end() error {
	var errs []error
	for _, p := range c.running {
		errs = append(errs, p.Process.Signal(syscall.SIGTERM), p.Wait())
	}
	c.running = nil
	return errors.Join(errs...)
}

// say prints for whoever watches.
func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }

// summary shows who did what, and fails if anything was lost or done twice.
func summary(db *gorm.DB, out io.Writer, o options, took time.Duration) error {
	var workers []struct {
		Worker string
		Done   int
	}
	if err := db.Raw("SELECT worker, count(*) AS done FROM receipts GROUP BY 1 ORDER BY length(worker), worker").Scan(&workers).Error; err != nil {
		return err
	}
	for _, w := range workers {
		say(out, "\n%-4s did %5d", w.Worker, w.Done)
	}
	var facts struct{ Jobs, Done, Dead, Receipts, Tasks, TooMany, Attempts int }
	err := db.Raw(`SELECT count(*) AS jobs, count(*) FILTER (WHERE state = 'done') AS done, count(*) FILTER (WHERE state = 'dead') AS dead,
		sum(attempts) AS attempts, count(*) FILTER (WHERE attempts > max_attempts) AS too_many,
		(SELECT count(*) FROM receipts) AS receipts, (SELECT count(DISTINCT task_id) FROM receipts) AS tasks FROM tasks`).Scan(&facts).Error
	if err != nil {
		return err
	}
	say(out, "\n\n%d jobs in %.1f s and %d attempts: %d done, %d given up.\n", facts.Jobs, took.Seconds(), facts.Attempts, facts.Done, facts.Dead)
	if facts.Jobs != o.jobs || facts.Done+facts.Dead != o.jobs || facts.Done != facts.Receipts || facts.Tasks != facts.Receipts || facts.TooMany > 0 {
		return fmt.Errorf("something was lost or done twice: %+v", facts)
	}
	say(out, "Every job was done once or given up, none was lost, none was done twice.\n")
	return nil
}
