package bench

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pglock "github.com/allisson/go-pglock/v3"
	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// BenchmarkSessionLock compares locks on distinct keys: a session-lock manager on one connection, and go-pglock, which uses a connection of a pool
// of 90 for each lock.
func BenchmarkSessionLock(b *testing.B) {
	peer := pooled(pool(b, pgtest.DSN(b)))
	m, err := sessionlock.Open(b.Context(), pgtest.DSN(b))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = m.Close(context.Background()) }()
	for _, n := range []int{1, 8, 64, 1000} {
		b.Run(fmt.Sprintf("goroutines=%d", n), func(b *testing.B) {
			paired(b, 100*time.Millisecond,
				func(until time.Time) int { return crowd(b, n, until, peer) },
				func(until time.Time) int { return crowd(b, n, until, managed(m)) })
		})
	}
}

// once takes a lock and releases it.
type once func(ctx context.Context, key lockkey.Key) error

func managed(m *sessionlock.Manager, opts ...sessionlock.AcquireOption) once {
	return func(ctx context.Context, key lockkey.Key) error {
		l, err := m.TryAcquire(ctx, key, opts...)
		if err != nil {
			return err
		}
		return l.Release(ctx)
	}
}

// pool is what the peers use: a connection of a pool for each lock.
func pool(b *testing.B, dsn string) *sql.DB {
	b.Helper()
	db, err := sql.Open("pgx", dsn)
	must(b, err)
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(90)
	db.SetMaxIdleConns(90)
	return db
}

// pooled takes locks with go-pglock.
func pooled(db *sql.DB) once {
	return func(ctx context.Context, key lockkey.Key) error {
		id, _ := key.Int64()
		lock, err := pglock.NewLock(ctx, id, db)
		if err != nil {
			return err
		}
		defer lock.Close()
		if ok, err := lock.Lock(ctx); err != nil || !ok {
			return fmt.Errorf("lock: %v, %w", ok, err)
		}
		return lock.Unlock(ctx)
	}
}

// statements runs statements one by one on one connection of the pool. Each must return true.
func statements(db *sql.DB, texts []string) once {
	return func(ctx context.Context, key lockkey.Key) error {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		id, _ := key.Int64()
		for _, text := range texts {
			var ok bool
			if err := conn.QueryRowContext(ctx, text, id).Scan(&ok); err != nil || !ok {
				return fmt.Errorf("%s: %v, %w", text, ok, err)
			}
		}
		return nil
	}
}

// crowd counts how often n goroutines do it, each with its own key.
func crowd(b *testing.B, n int, until time.Time, do once) int {
	var over atomic.Bool // reading the clock would be 5 % of the work
	time.AfterFunc(time.Until(until), func() { over.Store(true) })
	var wg sync.WaitGroup
	counts := make([]int, n)
	for i := range n {
		wg.Go(func() {
			key := lockkey.Of("bench", i)
			for !over.Load() {
				if err := do(context.Background(), key); err != nil {
					b.Error(err)
					return
				}
				counts[i]++
			}
		})
	}
	wg.Wait()
	total := 0
	for _, c := range counts {
		total += c
	}
	return total
}

// BenchmarkSessionFenced compares fenced locks on distinct keys: a manager with one connection for locks and one for tokens, and lock, upsert and
// unlock one by one on a pool of 90.
func BenchmarkSessionFenced(b *testing.B) {
	db := pool(b, pgtest.DSN(b))
	if err := fence.Migrate(b.Context(), db); err != nil {
		b.Fatal(err)
	}
	m, err := sessionlock.Open(b.Context(), pgtest.DSN(b))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = m.Close(context.Background()) }()
	peer := statements(db, []string{
		"SELECT pg_try_advisory_lock($1)",
		"INSERT INTO gormlock_fence AS f VALUES (1, $1, 1, 'bench') ON CONFLICT (space, id) DO UPDATE SET token = f.token + 1 RETURNING true",
		"SELECT pg_advisory_unlock($1)",
	})
	b.Run("goroutines=1000", func(b *testing.B) {
		paired(b, 200*time.Millisecond,
			func(until time.Time) int { return crowd(b, 1000, until, peer) },
			func(until time.Time) int { return crowd(b, 1000, until, managed(m, sessionlock.Fenced())) })
	})
}

// BenchmarkSessionHandOff compares the time from the release of a key to the return of the acquire that waits for it on another session: with two
// managers, and with two connections that use pg_advisory_lock.
func BenchmarkSessionHandOff(b *testing.B) {
	dsn := pgtest.DSN(b)
	key := lockkey.Of("hand-off")
	observer := connect(b, dsn)
	waited := func() {
		for blocked := 0; blocked == 0; {
			if err := observer.QueryRow(b.Context(), "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").Scan(&blocked); err != nil {
				b.Fatal(err)
			}
		}
	}

	var holder, waiter [2]func()
	for i := range 2 {
		m, err := sessionlock.Open(b.Context(), dsn)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = m.Close(context.Background()) })
		var l *sessionlock.Lock
		holder[i] = func() { l, err = m.Acquire(context.Background(), key); must(b, err) }
		waiter[i] = func() { must(b, l.Release(context.Background())) }
	}
	var take, give [2]func()
	id, _ := lockkey.Of("hand-off", "peer").Int64()
	for i := range 2 {
		c := connect(b, dsn)
		take[i] = func() { _, err := c.Exec(context.Background(), "SELECT pg_advisory_lock($1)", id); must(b, err) }
		give[i] = func() { _, err := c.Exec(context.Background(), "SELECT pg_advisory_unlock($1)", id); must(b, err) }
	}

	// One of each in turns, so that both run under the same load.
	ours, peer := newHandOffs(holder, waiter), newHandOffs(take, give)
	const rounds, times = 50, 20
	var ratios []float64
	for range rounds {
		for range times {
			peer.one(waited)
			ours.one(waited)
		}
		ratios = append(ratios, median(last(ours.times, times))/median(last(peer.times, times)))
	}
	for b.Loop() { // the hand-offs are the loop
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(peer.times)*1e6, "peer-us")
	b.ReportMetric(median(ours.times)*1e6, "ours-us")
	reportRatios(b, "ratio", ratios)
}

func last(values []float64, n int) []float64 { return values[len(values)-n:] }

// handOffs lets two sides take a key from each other.
type handOffs struct {
	take, give [2]func()
	holder     int
	times      []float64 // in seconds
}

func newHandOffs(take, give [2]func()) *handOffs {
	take[0]()
	return &handOffs{take: take, give: give}
}

// one lets the other side wait for the key, and measures from the release on.
func (h *handOffs) one(waited func()) {
	next := 1 - h.holder
	got := make(chan time.Time)
	go func() {
		h.take[next]()
		got <- time.Now()
	}()
	waited()
	released := time.Now()
	h.give[h.holder]()
	h.times = append(h.times, (<-got).Sub(released).Seconds())
	h.holder = next
}

func connect(b *testing.B, dsn string) *pgx.Conn {
	b.Helper()
	c, err := pgx.Connect(b.Context(), dsn)
	must(b, err)
	b.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Error(err)
	}
}
