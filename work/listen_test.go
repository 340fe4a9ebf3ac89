package work_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

// gate holds up the statement by which a worker begins to listen, until open is closed.
type gate struct {
	open, looked chan struct{}
}

func (g gate) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if strings.Contains(q.SQL, "::oid::bigint") {
		<-g.open
	}
	return context.WithValue(ctx, gate{}, q.SQL)
}

func (g gate) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if text, _ := ctx.Value(gate{}).(string); strings.Contains(text, "LEAST(") { // the last one of a look
		select {
		case g.looked <- struct{}{}:
		default:
		}
	}
}

// A worker that shares a connection which listens already may come to it after its first look, and after the notification of
// a job that was committed in between.
func TestRun_hearsOfJobsFromItsFirstLookOn(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	db := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()))
	must(t, work.Migrate(db, &Mail{}))
	config, err := pgx.ParseConfig(dsn)
	must(t, err)
	g := gate{make(chan struct{}), make(chan struct{}, 1)}
	config.Tracer = g
	pool := stdlib.OpenDB(*config)
	t.Cleanup(func() { must(t, pool.Close()) })
	late, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
	must(t, err)
	must(t, late.Use(gormlock.New()))

	start(t, worker(t, db, func(context.Context, *Mail) error { return nil }, work.Queues("another")))
	listens(t, db, "application_name = 'gormlock work' AND query LIKE '%LISTEN%' AND state = 'idle' AND datname = current_database()")
	begun := make(chan struct{}, 1)
	start(t, worker(t, late, func(context.Context, *Mail) error { begun <- struct{}{}; return nil }, work.Poll(time.Hour)))
	pgtest.Await(t, "the first look", g.looked)
	ear := pgtest.Conn(t, pgtest.Through(dsn))
	_, err = ear.Exec(t.Context(), "LISTEN gormlock_work")
	must(t, err)
	enqueue(t, db, "x")
	_, err = ear.WaitForNotification(t.Context())
	must(t, err)
	close(g.open)
	began := time.Now()
	pgtest.Await(t, "the job", begun)
	if took := time.Since(began); took > 4500*time.Millisecond { // the look behind is after five seconds
		t.Errorf("the job began after %s", took)
	}
}
