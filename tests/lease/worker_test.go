package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/torture"
)

// What a worker of these tests is told beside torture.WorkerDSN.
const (
	workerSkew = "GORMLOCK_TEST_WORKER_SKEW" // of its wall clock
	workerLong = "GORMLOCK_TEST_WORKER_LONG" // works long, again and again
	workerKind = "GORMLOCK_TEST_WORKER_KIND" // of work: "" takes leases, "lead", "every", "slots"
)

// workerTTL is the length of the workers' leases.
const workerTTL = 700 * time.Millisecond

type worker struct {
	*torture.Worker
	m    *lease.Manager
	long bool
}

// fight is what a worker does until ctx ends.
func fight(ctx context.Context, tw *torture.Worker) error {
	pool, err := sql.Open("pgx", os.Getenv(torture.WorkerDSN)+"&default_query_exec_mode=exec&connect_timeout=2")
	if err != nil {
		return err
	}
	defer pool.Close()
	pool.SetMaxIdleConns(8) // what connecting costs is not what this is about
	skew, err := time.ParseDuration(os.Getenv(workerSkew))
	if err != nil {
		return err
	}
	clocked := pgtest.Skewed(ctx, skew)
	m, err := lease.New(clocked, pool)
	for err != nil && ctx.Err() == nil { // the server may be down
		pgtest.Pause(100 * time.Millisecond)
		m, err = lease.New(clocked, pool)
	}
	if err != nil {
		return nil // it was told to end before it began
	}
	w := &worker{tw, m, os.Getenv(workerLong) != ""}
	var wg sync.WaitGroup
	turn := map[string]func(context.Context, int){"": w.turn, "lead": w.lead, "every": w.every, "slots": w.slot}[os.Getenv(workerKind)]
	for i := range 2 {
		wg.Go(func() {
			for ctx.Err() == nil {
				turn(ctx, i)
			}
		})
	}
	wg.Wait()
	ending, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = m.Close(ending) // its server may be down
	return nil
}

// turn takes a lease, writes while it believes in it and gives it back.
func (w *worker) turn(ctx context.Context, _ int) {
	register := rand.IntN(torture.Registers)
	call := torture.Now()
	l, err := w.m.Acquire(ctx, lockkey.Of("register", register), workerTTL, lease.Timeout(5*time.Second))
	if err != nil {
		pgtest.Pause(20 * time.Millisecond) // the server may be down
		return
	}
	e := torture.Event{What: "held", Register: register, Token: l.Token().Number, Call: call, Return: torture.Now()}
	w.Say(e)
	believed := e.Return
	work := 20 * time.Millisecond
	if rand.IntN(8) == 0 || w.long && rand.IntN(2) == 0 {
		work = workerTTL * 2 // beyond a lease that is not renewed
	}
	for end := time.Now().Add(rand.N(work)); ; {
		if at := torture.Now(); l.Err() == nil {
			believed = at
			w.Write(register, l.Token())
		}
		if l.Err() != nil || time.Now().After(end) {
			break
		}
		pgtest.Pause(100 * time.Millisecond)
	}
	detached, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	e.Call = torture.Now()
	err = l.Release(detached)
	e.Return = torture.Now()
	switch {
	case err == nil:
		e.What = "released"
	case errors.Is(err, lease.ErrLost):
		e.What, e.Call, e.Until = "lost", believed, l.Until().UnixNano()
	default:
		e.What = "unsure"
	}
	w.Say(e)
	pgtest.Pause(4 * time.Millisecond)
}
