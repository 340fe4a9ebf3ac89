package bench

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// job is as wide as the jobs of a real queue.
type job struct {
	ID        int64
	State     string
	Priority  int
	Attempts  int
	Payload   string
	RunAt     time.Time
	CreatedAt time.Time
}

var running = map[string]any{"state": "running", "attempts": gorm.Expr("attempts + 1")}

func ready(q *gorm.DB) *gorm.DB {
	return q.Where("state = 'ready'").Order("priority DESC, id")
}

// bareClaim is a claim written by hand.
const bareClaim = `WITH free AS MATERIALIZED (
	SELECT id FROM jobs WHERE state = 'ready' ORDER BY priority DESC, id LIMIT %d FOR NO KEY UPDATE SKIP LOCKED)
UPDATE jobs SET state = 'running', attempts = attempts + 1 FROM free WHERE jobs.id = free.id
RETURNING jobs.id, jobs.state, jobs.priority, jobs.attempts, jobs.payload, jobs.run_at, jobs.created_at`

func bare(ctx context.Context, pool *sql.DB, query string) ([]job, error) {
	rows, err := pool.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var jobs []job
	for rows.Next() {
		var j job
		if err := rows.Scan(&j.ID, &j.State, &j.Priority, &j.Attempts, &j.Payload, &j.RunAt, &j.CreatedAt); err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	return jobs, rows.Err()
}

// jobs fills the table with n ready jobs.
func jobs(b *testing.B, db *gorm.DB, n int) {
	b.Helper()
	makeJobs(b, db, "", n, "SELECT 1")
}

// makeJobs makes a table of some kind with settings, and fills it with n ready jobs.
func makeJobs(b *testing.B, db *gorm.DB, kind string, n int, settings string) {
	b.Helper()
	for _, text := range []string{
		"DROP TABLE IF EXISTS jobs",
		"CREATE " + kind + ` TABLE jobs (id bigint GENERATED ALWAYS AS IDENTITY, state text NOT NULL, priority int NOT NULL,
			attempts int NOT NULL DEFAULT 0, payload text NOT NULL, run_at timestamptz NOT NULL DEFAULT now(), created_at timestamptz NOT NULL DEFAULT now())`,
		settings,
		fmt.Sprintf(`INSERT INTO jobs (state, priority, payload) SELECT 'ready', i %% 4, repeat('x', 100) FROM generate_series(1, %d) i`, n),
		"ALTER TABLE jobs ADD PRIMARY KEY (id)", // building an index at once is faster for a long list
		"CREATE INDEX ON jobs (priority DESC, id) WHERE state = 'ready'",
		"VACUUM ANALYZE jobs",
	} {
		if err := db.Exec(text).Error; err != nil {
			b.Fatal(err)
		}
	}
}

// open opens GORM with the plugin, and returns its pool too, so both sides use the same connections.
func open(b *testing.B, conns int) (*gorm.DB, *sql.DB) {
	b.Helper()
	db := pgtest.Open(b, pgtest.Plugin(gormlock.New()), pgtest.Schema(), pgtest.MaxConns(conns))
	pool, err := db.DB()
	if err != nil {
		b.Fatal(err)
	}
	return db, pool
}

// BenchmarkClaim10 claims 10 rows at a time on a small and on a large table. It compares Claim with a claim by hand, and a claim by hand through
// GORM with one without GORM, each pair in turns. All three are not compared at once: two of them send the same statement, so only that one would
// be in the server's caches.
func BenchmarkClaim10(b *testing.B) {
	db, pool := open(b, 1)
	bareSQL := fmt.Sprintf(bareClaim, 10)
	byClaim := func() (int, error) {
		jobs, err := gormlock.Claim[job](db, 10, running, ready)
		return len(jobs), err
	}
	byHand := func() (int, error) { // in the context of db, because a context that can end costs a goroutine
		jobs, err := bare(db.Statement.Context, pool, bareSQL)
		return len(jobs), err
	}
	throughGORM := func() (int, error) {
		var jobs []job
		err := db.Raw(bareSQL).Scan(&jobs).Error
		return len(jobs), err
	}
	var small time.Duration
	for _, size := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("ready=%d", size), func(b *testing.B) {
			tables, rounds := 1, min(300, size/500) // a round takes 400 rows, so the table is never empty
			if size == 10_000 {
				tables = 15
			}
			var claims, raws pairs
			for b.Loop() {
				for range tables {
					b.StopTimer()
					jobs(b, db, size)
					b.StartTimer()
					claims.inTurns(b, rounds, 10, byClaim, byHand)
					raws.inTurns(b, rounds, 10, throughGORM, byHand)
				}
			}
			claim := median(claims.ours)
			b.ReportMetric(us(claim), "claim-µs")
			b.ReportMetric(us(median(claims.peers)), "bare-µs")
			b.ReportMetric(us(median(raws.ours)), "gorm-raw-µs")
			reportRatios(b, "x-bare", claims.ratios)
			reportRatios(b, "gorm-raw-x-bare", raws.ratios)
			if size == 10_000 {
				small = claim
			} else if small > 0 {
				reportRatios(b, "x-small", over(claims.ours, small))
			}
		})
	}
}

// BenchmarkClaimArgument claims 10 of 600,000 rows at a time from 4 goroutines. It compares an argument in the condition, as in the README, with a
// literal, in turns. The table has a partial index on ready rows.
func BenchmarkClaimArgument(b *testing.B) {
	const workers = 4
	db, _ := open(b, workers)
	rate := func(where func(*gorm.DB) *gorm.DB) func(until time.Time) int {
		return func(until time.Time) int {
			var claimed atomic.Int64
			var all sync.WaitGroup
			for range workers {
				all.Go(func() {
					for time.Now().Before(until) {
						jobs, err := gormlock.Claim[job](db, 10, running, where)
						if err != nil || len(jobs) == 0 {
							b.Error(len(jobs), err)
							return
						}
						claimed.Add(int64(len(jobs)))
					}
				})
			}
			all.Wait()
			return int(claimed.Load())
		}
	}
	jobs(b, db, 600_000)
	paired(b, 200*time.Millisecond, rate(ready), rate(func(q *gorm.DB) *gorm.DB {
		return q.Where("state = ?", "ready").Order("priority DESC, id")
	}))
}
