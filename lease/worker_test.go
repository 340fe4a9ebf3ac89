package lease_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// Workers are processes of their own, so that one can be killed and stopped: the test
// binary with these in its environment.
const (
	workerDSN    = "GORMLOCK_TEST_WORKER_DSN"    // of the manager, through whatever disturbs it
	workerDirect = "GORMLOCK_TEST_WORKER_DIRECT" // of the register
	workerNaked  = "GORMLOCK_TEST_WORKER_NAKED"  // writes without a guard: the control
	workerSkew   = "GORMLOCK_TEST_WORKER_SKEW"   // of its wall clock
	workerLong   = "GORMLOCK_TEST_WORKER_LONG"   // works long, again and again
)

const (
	// registers is how many keys and registers the workers fight for.
	registers = 2
	// workerTTL is the length of their leases.
	workerTTL = 700 * time.Millisecond
)

// happened is a line that a worker writes, of something that was done from Call to
// Return, in nanoseconds of the machine's one clock.
type happened struct {
	What     string // held, released, lost, unsure, writing, written, refused, failed
	Register int
	Token    int64
	Write    string // names one write for the audit
	Call     int64  // of lost: when it last said that it was held
	Return   int64
	Until    int64 // of lost: until when it would have said so
}

func now() int64 { return time.Now().UnixNano() }

type worker struct {
	m     *lease.Manager
	db    *sql.DB // of the register
	naked bool
	long  bool
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
	pool, err := sql.Open("pgx", os.Getenv(workerDSN))
	if err != nil {
		return err
	}
	defer pool.Close()
	direct, err := sql.Open("pgx", os.Getenv(workerDirect))
	if err != nil {
		return err
	}
	defer direct.Close()
	skew, err := time.ParseDuration(os.Getenv(workerSkew))
	if err != nil {
		return err
	}
	m, err := lease.New(ctx, pool, lease.Skewed(skew))
	for err != nil && ctx.Err() == nil { // the server may be down
		pause(100 * time.Millisecond)
		m, err = lease.New(ctx, pool, lease.Skewed(skew))
	}
	if err != nil {
		return nil // it was told to end before it began
	}
	w := &worker{m: m, db: direct, naked: os.Getenv(workerNaked) != "", long: os.Getenv(workerLong) != "", out: json.NewEncoder(os.Stdout)}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for ctx.Err() == nil {
				w.turn(ctx, rand.IntN(registers))
			}
		})
	}
	wg.Wait()
	ending, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = m.Close(ending) // its server may be down
	return nil
}

func (w *worker) say(h happened) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.out.Encode(h)
}

// turn takes a lease, writes while it believes in it and gives it back.
func (w *worker) turn(ctx context.Context, register int) {
	call := now()
	l, err := w.m.Acquire(ctx, lockkey.Of("register", register), workerTTL, lease.Timeout(5*time.Second))
	if err != nil {
		pause(20 * time.Millisecond) // the server may be down
		return
	}
	h := happened{What: "held", Register: register, Token: l.Token().Number, Call: call, Return: now()}
	w.say(h)
	believed := h.Return
	work := 20 * time.Millisecond
	if rand.IntN(8) == 0 || w.long && rand.IntN(2) == 0 {
		work = workerTTL * 2 // beyond a lease that is not renewed
	}
	for end := time.Now().Add(rand.N(work)); ; {
		if at := now(); l.Err() == nil {
			believed = at
			w.write(register, l)
		}
		if l.Err() != nil || time.Now().After(end) {
			break
		}
		pause(100 * time.Millisecond)
	}
	detached, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	h.Call = now()
	err = l.Release(detached)
	h.Return = now()
	switch {
	case err == nil:
		h.What = "released"
	case errors.Is(err, lease.ErrLost):
		h.What, h.Call, h.Until = "lost", believed, l.Until().UnixNano()
	default:
		h.What = "unsure"
	}
	w.say(h)
	pause(4 * time.Millisecond)
}

// write writes the register and the audit in one statement, as a holder that believes.
func (w *worker) write(register int, l *lease.Lease) {
	token := l.Token()
	h := happened{What: "writing", Register: register, Token: token.Number, Write: fmt.Sprintf("%d-%d", os.Getpid(), now()), Call: now()}
	w.say(h)
	h.What = "failed"
	guard, args := token.Guard(4), token.Args()
	if w.naked {
		pause(80 * time.Millisecond) // time to be stopped in
		guard, args = "$4::int + $5::int + $6::int = 3", []any{1, 1, 1}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	result, err := w.db.ExecContext(ctx, `WITH written AS (UPDATE registers SET fence = $2 WHERE id = $1 AND `+guard+` RETURNING id)
		INSERT INTO audit (register, token, write) SELECT id, $2, $3 FROM written`,
		append([]any{register, token.Number, h.Write}, args...)...)
	if err == nil {
		if n, _ := result.RowsAffected(); n == 1 {
			h.What = "written"
		} else {
			h.What = "refused"
		}
	}
	h.Return = now()
	w.say(h)
}

// pause is the work under a lease, and beside it.
func pause(most time.Duration) { <-time.After(rand.N(most)) }
