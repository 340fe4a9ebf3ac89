package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgserver"
)

// home is where the tests of this binary run.
var home homeDatabase

type homeDatabase struct {
	mu       sync.Mutex
	failed   error
	given    string           // GORMLOCK_TEST_DSN
	server   *pgserver.Server // nil when a DSN is given
	name     string
	dsn      string
	observer *Observer
}

// open creates the database on the first call. It remembers a failure, so every test that needs the server reports it at once.
func (h *homeDatabase) open() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.observer != nil || h.failed != nil {
		return h.failed
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*bound)
	defer cancel()
	h.failed = h.make(ctx)
	if h.failed != nil && h.server != nil {
		h.failed = errors.Join(h.failed, h.server.Stop())
	}
	return h.failed
}

func (h *homeDatabase) make(ctx context.Context) (err error) {
	h.given = os.Getenv("GORMLOCK_TEST_DSN")
	admin := h.given
	if h.given == "" {
		if h.server, err = pgserver.Start(ctx); err != nil {
			return err
		}
		admin = h.server.DSN("postgres")
	}
	h.name = databaseName()
	if h.dsn, err = createDatabase(ctx, admin, h.name); err != nil {
		return err
	}
	h.observer, err = newObserver(h.dsn)
	return err
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// databaseName returns a unique name, because several runs may share one server.
func databaseName() string {
	pkg := strings.TrimSuffix(filepath.Base(os.Args[0]), ".test")
	pkg = notInName.ReplaceAllString(strings.ToLower(pkg), "_")
	return "gormlock_" + pkg[:min(len(pkg), 30)] + "_" + strings.ToLower(rand.Text()[:8])
}

func createDatabase(ctx context.Context, admin, name string) (string, error) {
	if err := exec(ctx, admin, "create database "+pgx.Identifier{name}.Sanitize()); err != nil {
		return "", fmt.Errorf("create database %s: %w", name, err)
	}
	return withParam(admin, "dbname", name)
}

func dropDatabase(ctx context.Context, admin, name string) error {
	if err := exec(ctx, admin, "drop database if exists "+pgx.Identifier{name}.Sanitize()+" with (force)"); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

func exec(ctx context.Context, dsn, sql string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

// exec executes a text in a database. For the test binary's database it uses one of the observer's connections, because opening a new one takes
// longer than most texts.
func (h *homeDatabase) exec(ctx context.Context, dsn, sql string) error {
	h.mu.Lock()
	observer := h.observer
	h.mu.Unlock()
	if observer == nil || dsn != h.dsn {
		return exec(ctx, dsn, sql)
	}
	_, err := observer.db.ExecContext(ctx, sql)
	return err
}

// DSN returns the connection string of the test binary's database.
func DSN(t testing.TB) string {
	t.Helper()
	if err := home.open(); err != nil {
		t.Fatal(err)
	}
	return home.dsn
}

// Server returns the server that was started for the test binary. Other tests use it at the same time. So a test that ends, crashes or pauses a
// server uses Fresh. If GORMLOCK_TEST_DSN is set, there is no such server, and the test fails.
func Server(t testing.TB) *pgserver.Server {
	t.Helper()
	DSN(t)
	if home.server == nil {
		t.Fatal("pgtest: GORMLOCK_TEST_DSN is set, the server is not ours: use pgtest.Fresh")
	}
	return home.server
}

// Fresh starts a server for this test alone, which may crash it. It is stopped at the end of the test. It is started even if GORMLOCK_TEST_DSN is
// set.
func Fresh(t testing.TB, opts ...pgserver.Option) *pgserver.Server {
	t.Helper()
	return started(t, func(ctx context.Context) (*pgserver.Server, error) { return pgserver.Start(ctx, opts...) })
}

// Standby makes a streaming standby of a server of this test. It is stopped at the end of the test.
func Standby(t testing.TB, primary *pgserver.Server, opts ...pgserver.Option) *pgserver.Server {
	t.Helper()
	return started(t, func(ctx context.Context) (*pgserver.Server, error) { return primary.Standby(ctx, opts...) })
}

func started(t testing.TB, start func(ctx context.Context) (*pgserver.Server, error)) *pgserver.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*bound)
	defer cancel()
	s, err := start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	StopAtEnd(t, s)
	return s
}

// StopAtEnd stops a server at the end of the test.
func StopAtEnd(t testing.TB, s *pgserver.Server) {
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// Database creates another database on the server of the test binary, for a test that needs two, and returns its connection string. It is dropped
// at the end.
func Database(t testing.TB) string {
	t.Helper()
	admin, name := DSN(t), databaseName()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	dsn, err := createDatabase(ctx, admin, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		if err := dropDatabase(ctx, admin, name); err != nil {
			t.Error(err)
		}
	})
	return dsn
}
