package torture

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// WorkerDSN is the environment variable that makes a process a worker. Its value is the connection string of the worker's manager, through whatever
// disturbs it.
const WorkerDSN = "GORMLOCK_TEST_WORKER_DSN"

const (
	workerDirect = "GORMLOCK_TEST_WORKER_DIRECT" // the connection string of the registers, undisturbed
	workerNaked  = "GORMLOCK_TEST_WORKER_NAKED"  // writes without a guard
)

// Registers is how many keys and registers the workers compete for, counted from 0.
const Registers = 2

// Event is a line that a worker writes about something that was done from Call to Return, in nanoseconds of the machine's only clock.
type Event struct {
	What     string // held, released, lost, unsure, writing, written, refused, failed
	Register int
	Token    int64
	Write    string // names one write for the audit
	Call     int64  // of lost: when the worker last knew that it held
	Return   int64
	Until    int64 // of lost: until when it would have held the lock, if that has an end
}

// Now is the current time on the clock of events.
func Now() int64 { return time.Now().UnixNano() }

// Worker is this process: one of those that compete for the registers.
type Worker struct {
	registers *sql.DB
	naked     bool
	mu        sync.Mutex
	out       *json.Encoder
}

// Main runs the tests of a package and exits. If this process is a worker, it calls fight instead, until ctx ends. ctx ends when the scene says so.
func Main(m *testing.M, fight func(ctx context.Context, w *Worker) error) {
	pgtest.Process(WorkerDSN, func() error { return work(fight) })
	pgtest.Main(m)
}

func work(fight func(ctx context.Context, w *Worker) error) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the scene closes it
		stop()
	}()
	db, err := sql.Open("pgx", os.Getenv(workerDirect))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return fight(ctx, &Worker{registers: db, naked: os.Getenv(workerNaked) != "", out: json.NewEncoder(os.Stdout)})
}

// Say sends an event to the scene.
func (w *Worker) Say(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.out.Encode(e)
}

// Write writes a register and the audit in one statement, as a holder that believes that it holds the lock.
func (w *Worker) Write(register int, token fence.Token) {
	e := Event{What: "writing", Register: register, Token: token.Number, Write: fmt.Sprintf("%d-%d", os.Getpid(), Now()), Call: Now()}
	w.Say(e)
	guard, args := token.Guard(4), token.Args()
	if w.naked {
		pgtest.Pause(80 * time.Millisecond) // time to be stopped in
		guard, args = "$4::int + $5::int + $6::int = 3", []any{1, 1, 1}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	result, err := w.registers.ExecContext(ctx, `WITH written AS (UPDATE registers SET fence = $2 WHERE id = $1 AND `+guard+` RETURNING id)
		INSERT INTO audit (register, token, write) SELECT id, $2, $3 FROM written`,
		append([]any{register, token.Number, e.Write}, args...)...)
	e.What = "failed"
	if err == nil {
		if n, _ := result.RowsAffected(); n == 1 {
			e.What = "written"
		} else {
			e.What = "refused"
		}
	}
	e.Return = Now()
	w.Say(e)
}

// Ran records that a run of a tick has done its work, as a holder that believes that it holds the lock. It reports whether the database accepted
// that.
func (w *Worker) Ran(register int, token fence.Token, tick time.Time) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	result, err := w.registers.ExecContext(ctx, "INSERT INTO ran (register, token, tick) SELECT $1, $2, $3 WHERE "+token.Guard(4),
		append([]any{register, token.Number, tick}, token.Args()...)...)
	if err != nil {
		return false
	}
	n, _ := result.RowsAffected()
	return n == 1
}
