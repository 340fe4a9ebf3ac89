package gormlocktest_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/gormlocktest"
	"github.com/gormlock/gormlock/internal/claim"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/rowlock"
	"github.com/gormlock/gormlock/lockkey"
)

// scene is a use of gormlock that goes the same way against go-sqlmock and on a server.
type scene struct {
	plugin []gormlock.Option
	expect func(s *stage)       // of the mock
	real   func(s *stage)       // what must be on the server for it to answer as the mock does
	do     func(s *stage) error // the use
	want   error
}

// stage is where a scene is played.
type stage struct {
	*testing.T
	db   *gorm.DB
	keys []lockkey.Key
	mock sqlmock.Sqlmock // nil on a server
	pool *sql.DB         // of a rival on the server, nil with a mock

	heard *texts
}

// forget forgets what was heard while the stage was set.
func (s *stage) forget() { s.heard.all = nil }

// hold lets a rival hold the lock.
func (s *stage) hold(key lockkey.Key) { gormlocktest.Hold(s, s.pool, key) }

// locked lets a rival lock rows.
func (s *stage) locked(query string) {
	tx, err := s.pool.BeginTx(context.WithoutCancel(s.Context()), nil)
	if err == nil {
		_, err = tx.ExecContext(s.Context(), query+" FOR UPDATE")
	}
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = tx.Rollback() })
}

func (s *stage) exec(query string) {
	if _, err := s.pool.ExecContext(s.Context(), query); err != nil {
		s.Fatal(err)
	}
}

// texts are the statements that somebody was asked, without those of the driver's own BEGIN and its end, and without the
// numbers of savepoints.
type texts struct {
	mu  sync.Mutex
	all []string
}

var (
	spaces  = regexp.MustCompile(`\s+`)
	numbers = regexp.MustCompile(`\b(gormlock_once_|sp)\d+`)
)

func (h *texts) hear(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if word, _, _ := strings.Cut(text, " "); slices.Contains([]string{"begin", "commit", "rollback"}, word) {
		return
	}
	if text == rowlock.AskLockable || text == rowlock.AskTableRows || text == claim.AskRelation { // asked once for a table, and needed by no mock
		return
	}
	h.all = append(h.all, numbers.ReplaceAllString(spaces.ReplaceAllString(text, " "), "${1}N"))
}

// TraceQueryStart implements [pgx.QueryTracer].
func (h *texts) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	h.hear(data.SQL)
	return ctx
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (*texts) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// play plays the scene with a mock and on a server, and compares what they were asked and what came of it.
func (c scene) play(t *testing.T) {
	t.Helper()
	keys := []lockkey.Key{pgtest.Key(t, "a"), pgtest.Key(t, "b")}
	slices.SortFunc(keys, lockkey.Compare) // the order in which they are taken

	fromMock, fromServer := &texts{}, &texts{}
	mocked := c.mocked(t, fromMock)
	mocked.keys = keys
	c.expect(mocked)
	imagined := c.do(mocked)
	if err := mocked.mock.ExpectationsWereMet(); err != nil {
		t.Error(err)
	}
	if !errors.Is(imagined, c.want) {
		t.Fatalf("with a mock: %v, want %v", imagined, c.want)
	}

	server := c.onServer(t, fromServer)
	server.keys = keys
	if c.real != nil {
		c.real(server)
	}
	happened := c.do(server)
	if !errors.Is(happened, c.want) {
		t.Fatalf("on a server: %v, want %v", happened, c.want)
	}
	if imagined != nil && imagined.Error() != happened.Error() {
		t.Errorf("with a mock: %v\non a server:  %v", imagined, happened)
	}
	if !slices.Equal(fromMock.all, fromServer.all) {
		t.Errorf("with a mock:\n%s\non a server:\n%s", strings.Join(fromMock.all, "\n"), strings.Join(fromServer.all, "\n"))
	}
}

// connector makes connections that say as little of themselves as those of a mock. gormlock prepares a lock on one of pgx's,
// and need not ask it how its transaction stands.
type connector struct{ driver.Connector }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return silent{conn.(*stdlib.Conn)}, nil //nolint:forcetypeassert // pgx's connector makes no others
}

// silent has all methods of the driver's connection but Conn, in whose place is a field.
type silent struct{ *stdlib.Conn }

func (c scene) mocked(t *testing.T, heard *texts) *stage {
	t.Helper()
	pool, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherFunc(func(expected, actual string) error {
		err := sqlmock.QueryMatcherRegexp.Match(expected, actual)
		if err == nil {
			heard.hear(actual)
		}
		return err
	})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	return &stage{T: t, db: c.open(t, pool), mock: mock, heard: heard}
}

func (c scene) onServer(t *testing.T, heard *texts) *stage {
	t.Helper()
	dsn := pgtest.SchemaDSN(t)
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.Tracer = heard
	pool := sql.OpenDB(connector{stdlib.GetConnector(*config)})
	t.Cleanup(func() { _ = pool.Close() })
	s := &stage{T: t, db: c.open(t, pool), pool: pgtest.SQLDB(t, pgtest.Through(dsn)), heard: heard}
	s.exec(`CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint NOT NULL, version bigint NOT NULL);
		INSERT INTO accounts VALUES (1, 0, 3), (2, 0, 3);
		CREATE TABLE tasks (id bigint PRIMARY KEY, state text NOT NULL);
		CREATE TABLE reports (id bigint PRIMARY KEY, body text, fence bigint NOT NULL DEFAULT 0);
		INSERT INTO reports VALUES (1, '', 0);
		` + fence.Schema + `;
		` + gormlock.OnceSchema)
	return s
}

func (c scene) open(t *testing.T, pool *sql.DB) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Use(gormlock.New(c.plugin...)); err != nil {
		t.Fatal(err)
	}
	return db
}
