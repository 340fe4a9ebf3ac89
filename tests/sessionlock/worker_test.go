package sessionlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
	"github.com/gormlock/gormlock/tests/internal/torture"
)

// workerPooled tells a worker that its torture.WorkerDSN leads through a pooler.
const workerPooled = "GORMLOCK_TEST_WORKER_POOLED"

type worker struct {
	*torture.Worker
	m *sessionlock.Manager
}

// fight is what a worker does until ctx ends.
func fight(ctx context.Context, tw *torture.Worker) error {
	opts := []sessionlock.Option{sessionlock.Heartbeat(time.Second)}
	if os.Getenv(workerPooled) != "" {
		opts = append(opts, sessionlock.AllowPooler())
	}
	m, err := sessionlock.Open(ctx, os.Getenv(torture.WorkerDSN), opts...)
	for err != nil && ctx.Err() == nil { // the server may be down
		pgtest.Pause(100 * time.Millisecond)
		m, err = sessionlock.Open(ctx, os.Getenv(torture.WorkerDSN), opts...)
	}
	if err != nil {
		return err
	}
	defer m.Close(context.Background())
	w := &worker{tw, m}
	for ctx.Err() == nil {
		w.turn(ctx, rand.IntN(torture.Registers))
	}
	return nil
}

// turn takes a lock, writes once and gives it back.
func (w *worker) turn(ctx context.Context, register int) {
	call := torture.Now()
	l, err := w.m.Acquire(ctx, lockkey.Of("register", register), sessionlock.Fenced(), sessionlock.Timeout(5*time.Second))
	if err != nil {
		pgtest.Pause(20 * time.Millisecond) // the server may be down
		return
	}
	e := torture.Event{What: "held", Register: register, Token: l.Token().Number, Call: call, Return: torture.Now()}
	w.Say(e)
	over := make(chan struct{})
	lost := make(chan int64, 1)
	go func() {
		defer close(lost)
		select {
		case <-l.Lost():
			lost <- torture.Now()
		case <-over:
		}
	}()
	pgtest.Pause(16 * time.Millisecond)
	w.Write(register, l.Token())

	detached, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	e.Call = torture.Now()
	err = l.Release(detached)
	e.Return = torture.Now()
	close(over)
	switch {
	case err == nil:
		e.What = "released"
	case errors.Is(err, sessionlock.ErrLost):
		// L2: from the sending of the last proof to when the loss was seen, which is the
		// end of Release when it was lost on its way back.
		var ended *holder.Error
		if !errors.As(err, &ended) {
			panic(err)
		}
		e.What, e.Call = "lost", ended.Proven.UnixNano()
		if seen, ok := <-lost; ok {
			e.Return = seen
		}
	default:
		e.What = "unsure"
	}
	w.Say(e)
	pgtest.Pause(4 * time.Millisecond)
}
