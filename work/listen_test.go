package work_test

import (
	"context"
	"errors"
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

// gate blocks the statement with which a worker begins to listen, until open is closed.
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

// A worker can join a connection that listens already after its first look. Then it also finds a job that was committed and announced between the
// two.
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
	if took := time.Since(began); took > 4500*time.Millisecond { // the next regular look is after five seconds
		t.Errorf("the job began after %s", took)
	}
}

// The connection that listens cannot be opened for a while: the worker logs that once, and again when it gets notifications.
func TestRun_saysThatItCannotListen(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	db := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()))
	must(t, work.Migrate(db, &Mail{}))
	config, err := pgx.ParseConfig(dsn)
	must(t, err)
	role := "ears_of_" + config.Database
	must(t, db.Exec("CREATE ROLE "+role+" LOGIN PASSWORD 'x' CONNECTION LIMIT 2").Error)
	t.Cleanup(func() {
		must(t, db.Exec("DROP OWNED BY "+role).Error)
		must(t, db.Exec("DROP ROLE "+role).Error)
	})
	must(t, db.Exec("GRANT ALL ON ALL TABLES IN SCHEMA public TO "+role).Error)
	config.User, config.Password = role, "x"
	pool := stdlib.OpenDB(*config)
	pool.SetMaxOpenConns(2)
	pool.SetMaxIdleConns(2)
	t.Cleanup(func() { must(t, pool.Close()) })
	one, err := pool.Conn(t.Context())
	must(t, err)
	other, err := pool.Conn(t.Context())
	must(t, err)
	must(t, errors.Join(one.Close(), other.Close())) // both sessions exist, and no third one is possible
	logged := pgtest.NewLogger()
	full, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{Logger: logged})
	must(t, err)
	must(t, full.Use(gormlock.New()))

	start(t, worker(t, full, func(context.Context, *Mail) error { return nil }))
	eventually(t, "it says so", func() bool {
		return strings.Contains(strings.Join(logged.Lines(), " "), "no connection listens for new jobs")
	})
	must(t, db.Exec("ALTER ROLE "+role+" CONNECTION LIMIT 20").Error)
	eventually(t, "it hears again", func() bool {
		return strings.Contains(strings.Join(logged.Lines(), " "), "are notified of new jobs again")
	})
	if lines := logged.Lines(); len(lines) != 2 {
		t.Errorf("it says %q", lines)
	}
}
