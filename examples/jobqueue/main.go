// Jobqueue is a job queue on one table: enqueued with the transaction that asks for the work, claimed by priority and
// age, retried with growing pauses, given up in the end, taken over when a worker dies.
//
//	go run ./examples/jobqueue
//
// It starts worker processes, ends one of them with kill -9 in the middle of its work, and shows at the end that every
// job was done once. queue.go is the part to copy.
//
// It runs on the server of DATABASE_URL or GORMLOCK_TEST_DSN, in a schema of its own that it drops at the end, or, where
// neither is set, on a throw-away server.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"gorm.io/gorm"
)

// options are how much there is to do, and by whom.
type options struct {
	jobs, processes, goroutines, batch, kills int
	lease                                     time.Duration
}

func main() {
	var o options
	flag.IntVar(&o.jobs, "jobs", 3000, "how many jobs")
	flag.IntVar(&o.processes, "processes", 3, "how many worker processes")
	flag.IntVar(&o.goroutines, "goroutines", 4, "how many goroutines work in each")
	flag.IntVar(&o.batch, "batch", 10, "how many jobs each claims at once")
	flag.IntVar(&o.kills, "kills", 2, "how many workers to kill")
	flag.DurationVar(&o.lease, "lease", time.Second, "how long a dead worker keeps its jobs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := program(ctx, os.Stdout, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "jobqueue:", err)
		os.Exit(1)
	}
}

// program is the whole program: a worker where the environment says so, else the one that starts the workers.
func program(ctx context.Context, out io.Writer, o options) error {
	if name := os.Getenv(workerName); name != "" {
		return workerProcess(ctx, name, o)
	}
	return show(ctx, out, o)
}

// show enqueues jobs, has them worked off, and checks the outcome.
func show(ctx context.Context, out io.Writer, o options) (err error) {
	dsn := cmp.Or(os.Getenv("DATABASE_URL"), os.Getenv("GORMLOCK_TEST_DSN"))
	p, err := newPlace(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	say(out, "%d jobs, %d processes of %d goroutines, batches of %d, leases of %s\n\n", o.jobs, o.processes, o.goroutines, o.batch, o.lease)

	queue := Queue{DB: p.db, Channel: p.schema, Lease: o.lease}
	workers := &crew{place: p, options: o, out: out}
	defer func() { err = errors.Join(err, workers.end()) }()
	for range o.processes {
		if err := workers.start(); err != nil {
			return err
		}
	}
	if err := enqueue(ctx, queue, o.jobs); err != nil {
		return err
	}
	began := time.Now()
	if err := watch(ctx, p.db, out, o, workers); err != nil {
		return err
	}
	took := time.Since(began)
	if err := workers.end(); err != nil {
		return err
	}
	return summary(p.db, out, o, took)
}

// enqueue adds the jobs in several transactions, as an application would, one of which is rolled back.
func enqueue(ctx context.Context, q Queue, n int) error {
	const perTransaction = 250
	queues := []string{"mail", "images"}
	for first := 0; first < n; first += perTransaction {
		err := q.DB.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			var jobs []Job
			for i := first; i < min(n, first+perTransaction); i++ {
				jobs = append(jobs, Job{Queue: queues[i%2], Priority: i % 3, Payload: payload(i)})
			}
			return q.Enqueue(tx, jobs...)
		})
		if err != nil {
			return err
		}
	}
	changedMyMind := errors.New("the order was not placed after all")
	err := q.DB.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := q.Enqueue(tx, Job{Queue: "mail", Payload: "never to be seen"}); err != nil {
			return err
		}
		return changedMyMind
	})
	if !errors.Is(err, changedMyMind) {
		return err
	}
	return nil
}

// payload says how the work will go: every tenth job fails once, every hundredth always.
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

// counts are the jobs by what they are at.
type counts struct{ Waiting, Claimed, Expired, Done, Dead int }

func count(db *gorm.DB) (c counts, err error) {
	err = db.Raw(`SELECT
		count(*) FILTER (WHERE state = 'ready' AND claimed_until IS NULL) AS waiting,
		count(*) FILTER (WHERE state = 'ready' AND claimed_until >= now()) AS claimed,
		count(*) FILTER (WHERE state = 'ready' AND claimed_until < now()) AS expired,
		count(*) FILTER (WHERE state = 'done') AS done,
		count(*) FILTER (WHERE state = 'dead') AS dead FROM jobs`).Scan(&c).Error
	return c, err
}

// watch shows how it goes until nothing is left to do, and kills workers at the right moments.
func watch(ctx context.Context, db *gorm.DB, out io.Writer, o options, workers *crew) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	began, shown, killed := time.Now(), counts{Done: -1}, 0
	for {
		c, err := count(db.WithContext(ctx))
		if err != nil {
			return err
		}
		if c != shown {
			say(out, "%5.1f s  waiting %5d  claimed %4d  lease over %3d  done %5d  dead %3d\n",
				time.Since(began).Seconds(), c.Waiting, c.Claimed, c.Expired, c.Done, c.Dead)
			shown = c
		}
		if c.Done+c.Dead == o.jobs {
			return nil
		}
		// A kill after each of equal parts of the work.
		if killed < o.kills && c.Claimed > 0 && c.Done > o.jobs*(killed+1)/(o.kills+2) {
			killed++
			if err := workers.killOne(); err != nil {
				return err
			}
		}
		if err := workers.check(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// crew are the worker processes.
type crew struct {
	place   *place
	options options
	out     io.Writer
	started int
	running []*process
}

type process struct {
	name string
	cmd  *exec.Cmd
	over chan struct{} // closed when it has ended
	err  error         // how; to be read after that
}

// start starts one more process: this program again, told by its environment that it is a worker.
func (c *crew) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c.started++
	p := &process{name: fmt.Sprintf("w%d", c.started), over: make(chan struct{})}
	o := c.options
	p.cmd = exec.Command(self, //nolint:noctx // ended by signals, gently first
		"-goroutines", fmt.Sprint(o.goroutines), "-batch", fmt.Sprint(o.batch), "-lease", o.lease.String())
	p.cmd.Env = append(os.Environ(), workerName+"="+p.name, workerDSN+"="+c.place.dsn, workerSchema+"="+c.place.schema)
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.over)
	}()
	c.running = append(c.running, p)
	return nil
}

// killOne kills the oldest process where it stands and starts another.
func (c *crew) killOne() error {
	p := c.running[0]
	c.running = c.running[1:]
	say(c.out, "         kill -9 %s (pid %d), in the middle of its work\n", p.name, p.cmd.Process.Pid)
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	<-p.over
	return c.start()
}

// check fails when a process has ended by itself.
func (c *crew) check() error {
	for _, p := range c.running {
		select {
		case <-p.over:
			return fmt.Errorf("worker %s ended: %w", p.name, p.err)
		default:
		}
	}
	return nil
}

// end lets all processes finish what they work on.
func (c *crew) end() error {
	var errs []error
	for _, p := range c.running {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // one that has ended already says so below
	}
	for _, p := range c.running {
		select {
		case <-p.over:
			if p.err != nil {
				errs = append(errs, fmt.Errorf("worker %s: %w", p.name, p.err))
			}
		case <-time.After(10 * time.Second):
			_ = p.cmd.Process.Kill()
			<-p.over
			errs = append(errs, fmt.Errorf("worker %s did not end", p.name))
		}
	}
	c.running = nil
	return errors.Join(errs...)
}
