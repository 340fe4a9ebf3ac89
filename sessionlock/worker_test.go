package sessionlock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// Workers are processes of their own, so that one can be killed and stopped: the test
// binary with these in its environment.
const (
	workerDSN    = "GORMLOCK_TEST_WORKER_DSN"    // of the manager, through whatever disturbs it
	workerDirect = "GORMLOCK_TEST_WORKER_DIRECT" // of the register
	workerPooled = "GORMLOCK_TEST_WORKER_POOLED"
	workerNaked  = "GORMLOCK_TEST_WORKER_NAKED" // writes without a guard: the control
)

// registers is how many keys and registers the workers fight for.
const registers = 2

// happened is a line that a worker writes, of something that was done from Call to
// Return, in nanoseconds of the machine's one clock.
type happened struct {
	What     string // held, released, lost, unsure, writing, written, refused, failed
	Register int
	Token    int64
	Write    string // names one write for the audit
	Call     int64
	Return   int64
}

func now() int64 { return time.Now().UnixNano() }

type worker struct {
	m     *sessionlock.Manager
	dsn   string
	conn  *pgx.Conn
	naked bool
	mu    sync.Mutex
	out   *json.Encoder
}

// work is the main function of a worker. It ends when its standard input does.
func work() error {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		stop()
	}()
	opts := []sessionlock.Option{sessionlock.Heartbeat(time.Second)}
	if os.Getenv(workerPooled) != "" {
		opts = append(opts, sessionlock.AllowPooler())
	}
	m, err := sessionlock.Open(ctx, os.Getenv(workerDSN), opts...)
	for err != nil && ctx.Err() == nil { // the server may be down
		pause(100 * time.Millisecond)
		m, err = sessionlock.Open(ctx, os.Getenv(workerDSN), opts...)
	}
	if err != nil {
		return err
	}
	defer m.Close(context.Background())
	w := &worker{m: m, dsn: os.Getenv(workerDirect), naked: os.Getenv(workerNaked) != "", out: json.NewEncoder(os.Stdout)}
	for ctx.Err() == nil {
		w.turn(ctx, rand.IntN(registers))
	}
	return nil
}

func (w *worker) say(h happened) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.out.Encode(h)
}

// turn takes a lock, writes once and gives it back.
func (w *worker) turn(ctx context.Context, register int) {
	call := now()
	l, err := w.m.Acquire(ctx, lockkey.Of("register", register), sessionlock.Fenced(), sessionlock.Timeout(5*time.Second))
	if err != nil {
		pause(20 * time.Millisecond) // the server may be down
		return
	}
	token := l.Token()
	w.say(happened{What: "held", Register: register, Token: token.Number, Call: call, Return: now()})
	over := make(chan struct{})
	lost := make(chan int64, 1)
	go func() {
		defer close(lost)
		select {
		case <-l.Lost():
			lost <- now()
		case <-over:
		}
	}()
	if w.naked {
		pause(60 * time.Millisecond) // time to be stopped in
	}
	pause(16 * time.Millisecond)
	w.write(register, l)

	detached, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	call = now()
	err = l.Release(detached)
	end := now()
	close(over)
	switch {
	case err == nil:
		w.say(happened{What: "released", Register: register, Token: token.Number, Call: call, Return: end})
	case errors.Is(err, sessionlock.ErrLost):
		// L2: from the sending of the last proof to when the loss was seen, which is the
		// end of Release when it was lost on its way back.
		if seen, ok := <-lost; ok {
			end = seen
		}
		w.say(happened{What: "lost", Register: register, Token: token.Number, Call: sessionlock.Proof(l).UnixNano(), Return: end})
	default:
		w.say(happened{What: "unsure", Register: register, Token: token.Number, Call: call})
	}
	pause(4 * time.Millisecond)
}

// write writes the register and the audit in one statement, as a holder that believes.
func (w *worker) write(register int, l *sessionlock.Lock) {
	token := l.Token()
	h := happened{What: "writing", Register: register, Token: token.Number, Write: fmt.Sprintf("%d-%d", os.Getpid(), now()), Call: now()}
	w.say(h)
	h.What = "failed"
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if w.conn == nil || w.conn.IsClosed() {
		w.conn, _ = pgx.Connect(ctx, w.dsn)
	}
	if w.conn != nil {
		guard, args := token.Guard(4), token.Args()
		if w.naked {
			guard, args = "$4::int + $5::int + $6::int = 3", []any{1, 1, 1}
		}
		tag, err := w.conn.Exec(ctx, `WITH written AS (UPDATE registers SET fence = $2 WHERE id = $1 AND `+guard+` RETURNING id)
			INSERT INTO audit (register, token, write) SELECT id, $2, $3 FROM written`,
			append([]any{register, token.Number, h.Write}, args...)...)
		switch {
		case err != nil:
		case tag.RowsAffected() == 1:
			h.What = "written"
		default:
			h.What = "refused"
		}
	}
	h.Return = now()
	w.say(h)
}

// pause is the work under a lock, and beside it.
func pause(most time.Duration) { <-time.After(rand.N(most)) }
