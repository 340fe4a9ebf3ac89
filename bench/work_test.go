package bench

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

const (
	workJobs    = 20_000
	workWorkers = 16
	workRounds  = 7 // each time
	valueRounds = 5 // of OnePer and of FairBy, each time
)

// task is a job of package work that is as wide as River's.
type task struct {
	work.Job
	AccountID *int64
	Payload   string
}

// tasks opens a database of its own with the table of tasks.
func tasks(b *testing.B, conns int, opts ...work.Option) *gorm.DB {
	b.Helper()
	db := pgtest.Open(b, pgtest.Through(pgtest.Database(b)), pgtest.Plugin(gormlock.New()), pgtest.MaxConns(conns))
	must(b, work.Migrate(db, &task{}, opts...))
	return db
}

func fillTasks(b *testing.B, db *gorm.DB, n int, account string) {
	b.Helper()
	for _, text := range []string{
		"TRUNCATE tasks",
		fmt.Sprintf("INSERT INTO tasks (account_id, payload) SELECT %s, repeat('x', 100) FROM generate_series(1, %d) i", account, n),
		"VACUUM ANALYZE tasks",
	} {
		must(b, db.Exec(text).Error)
	}
}

// workOff returns how many jobs per second a worker does, from its start until n are done.
func workOff(b *testing.B, db *gorm.DB, n int, opts ...work.Option) float64 {
	b.Helper()
	var handled atomic.Int64
	all := make(chan struct{})
	w, err := work.New(db, func(context.Context, *task) error {
		if handled.Add(1) == int64(n) {
			close(all)
		}
		return nil
	}, append(opts, work.Workers(workWorkers))...)
	must(b, err)
	ctx, stop := context.WithCancel(b.Context())
	over := make(chan error, 1)
	began := time.Now()
	go func() { over <- w.Run(ctx) }()
	<-all
	stop()
	must(b, <-over) // all outcomes are stored by then
	took := time.Since(began)
	var left int64
	must(b, db.Raw("SELECT count(*) FROM tasks WHERE state <> 'done'").Scan(&left).Error)
	if left > 0 {
		b.Fatalf("%d jobs are not done", left)
	}
	return float64(n) / took.Seconds()
}

type riverArgs struct {
	X string `json:"x"`
}

func (riverArgs) Kind() string { return "work" }

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	handle func()
}

func (w *riverWorker) Work(context.Context, *river.Job[riverArgs]) error {
	w.handle()
	return nil
}

// riverQueue is River without changes.
type riverQueue struct{ pool *pgxpool.Pool }

func newRiverQueue(b *testing.B, conns int32) *riverQueue {
	b.Helper()
	config, err := pgxpool.ParseConfig(pgtest.Database(b))
	must(b, err)
	config.MaxConns = conns
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	must(b, err)
	b.Cleanup(pool.Close)
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	must(b, err)
	_, err = migrator.Migrate(b.Context(), rivermigrate.DirectionUp, nil)
	must(b, err)
	return &riverQueue{pool}
}

func (r *riverQueue) fill(b *testing.B, n int) {
	b.Helper()
	for _, text := range []string{
		"TRUNCATE river_job",
		fmt.Sprintf(`INSERT INTO river_job (kind, args, max_attempts, priority, state, scheduled_at)
			SELECT 'work', jsonb_build_object('x', repeat('x', 100)), 25, 1, 'available', now() - interval '1 second' FROM generate_series(1, %d) i`, n),
		"VACUUM ANALYZE river_job",
	} {
		_, err := r.pool.Exec(b.Context(), text)
		must(b, err)
	}
}

// startRiver starts River's client, which asks for jobs as often as it can be set to.
func startRiver(b *testing.B, pool *pgxpool.Pool, handle func()) (client *river.Client[pgx.Tx], stop func()) {
	b.Helper()
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{handle: handle})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workWorkers}}, Workers: workers,
		FetchCooldown: time.Millisecond, FetchPollInterval: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	must(b, err)
	must(b, client.Start(b.Context()))
	return client, func() { must(b, client.Stop(context.WithoutCancel(b.Context()))) }
}

// workOff does the same with River's own client.
func (r *riverQueue) workOff(b *testing.B, n int) float64 {
	b.Helper()
	var handled atomic.Int64
	all := make(chan struct{})
	began := time.Now()
	_, stop := startRiver(b, r.pool, func() {
		if handled.Add(1) == int64(n) {
			close(all)
		}
	})
	<-all
	stop()
	took := time.Since(began)
	var left int64
	must(b, r.pool.QueryRow(b.Context(), "SELECT count(*) FROM river_job WHERE state <> 'completed'").Scan(&left))
	if left > 0 {
		b.Fatalf("%d jobs are not done", left)
	}
	return float64(n) / took.Seconds()
}

// BenchmarkWorkJobs lets 16 workers do empty jobs, with package work and with River's own client.
func BenchmarkWorkJobs(b *testing.B) {
	db := tasks(b, workWorkers+4)
	r := newRiverQueue(b, workWorkers+4)
	var ours, rivers []float64
	for b.Loop() {
		for range workRounds {
			fillTasks(b, db, workJobs, "NULL")
			ours = append(ours, workOff(b, db, workJobs))
			r.fill(b, workJobs)
			rivers = append(rivers, r.workOff(b, workJobs))
		}
	}
	b.ReportMetric(median(ours), "work-jobs/s")
	b.ReportMetric(median(rivers), "river-jobs/s")
	reportRatios(b, "x-river", ratios(ours, rivers))
}
