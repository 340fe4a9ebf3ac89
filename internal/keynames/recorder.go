package keynames

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/gormlock/gormlock/internal/lockid"
)

// After is for how long a caller must wait for or hold a key before it gets a name.
const After = time.Second

const (
	every      = After / 2
	room       = 50_000 // keys that are not old enough yet; more are not noted
	patience   = 5 * time.Second
	maxBackoff = 30 * time.Second
	remembered = time.Hour // for so long, a name that was written is not written again
	sweepEvery = 10 * time.Minute
)

// Scope says with whose end a lock is freed at the latest.
type Scope string

// The scopes of advisory locks.
const (
	Transaction Scope = "transaction"
	Session     Scope = "session"
)

// ID is a key as pg_locks has it.
type ID = lockid.ID

// Recorder writes names. Its goroutine runs while there are keys to check.
type Recorder struct {
	db     *sql.DB
	report func(error)

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	pending  map[ID]noted
	running  bool
	closed   bool
	failures int // in a row

	// for the goroutine, one at a time
	written map[ID]time.Time
	swept   time.Time
}

type noted struct {
	name  string
	scope Scope
	at    time.Time
}

// New is a recorder that writes to db. The recorder's goroutine calls report for the first failure of a series.
func New(db *sql.DB, report func(error)) *Recorder {
	r := &Recorder{db: db, report: report, pending: map[ID]noted{}, written: map[ID]time.Time{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Note says that a caller is about to ask for a key. It does not block, and cannot fail. If tens of thousands of other keys are already noted, the
// key gets no name.
func (r *Recorder) Note(id ID, scope Scope, name fmt.Stringer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.pending[id]; known || r.closed || len(r.pending) >= room {
		return
	}
	r.pending[id] = noted{name.String(), scope, time.Now()}
	if !r.running {
		r.running = true
		r.wg.Go(r.run)
	}
}

// Close ends the recorder. Names not written yet stay unwritten.
func (r *Recorder) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	r.wg.Wait()
}

// run checks pending keys until there are none.
func (r *Recorder) run() {
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(r.pause(r.flush()))
		if r.idle() {
			return
		}
	}
}

// pause is how long to wait after a flush that ended with err.
func (r *Recorder) pause(err error) time.Duration {
	if err == nil || r.ctx.Err() != nil {
		r.failures = 0
		return every
	}
	if r.failures == 0 {
		r.report(explain(err))
	}
	r.failures++
	return min(every<<min(r.failures, 10), maxBackoff)
}

func (r *Recorder) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = len(r.pending) > 0
	return !r.running
}

// flush names the keys that were noted long enough ago and are still in the lock table, and forgets those that are not.
func (r *Recorder) flush() error {
	due := r.due(time.Now().Add(-After))
	if len(due) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	locked, err := r.locked(ctx)
	if err != nil {
		return err
	}
	var names []row
	for id, n := range due {
		if locked[id] && time.Since(r.written[id]) > remembered {
			names = append(names, row{id.Space, id.ID, n.name, n.scope})
		}
	}
	if err := r.write(ctx, names); err != nil {
		return err
	}
	r.forget(due, names)
	return r.sweep(ctx)
}

func (r *Recorder) due(before time.Time) map[ID]noted {
	r.mu.Lock()
	defer r.mu.Unlock()
	due := map[ID]noted{}
	for id, n := range r.pending {
		if n.at.Before(before) {
			due[id] = n
		}
	}
	return due
}

// forget removes the keys that were checked from the list, and remembers whose names were written.
func (r *Recorder) forget(due map[ID]noted, names []row) {
	now := time.Now()
	for id, at := range r.written {
		if now.Sub(at) > remembered {
			delete(r.written, id)
		}
	}
	for _, n := range names {
		r.written[ID{Space: n.Space, ID: n.ID}] = now
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range due {
		delete(r.pending, id)
	}
}
