package compat_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
)

// side is GORM on tables of its own, with all that goes over its wires counted.
type side struct {
	at    place // past the wires
	wired place
	db    *gorm.DB
	admin *pgx.Conn        // goes past the wires
	wires []*wiretap.Proxy // the second one leads to the replica
	log   *logbook
	spans *tracetest.SpanRecorder // nil: not traced

	first, now []string // the contents of its tables
	disorderly bool     // its rows lie in another order than they were stored in
}

// outcome is what an operation did, seen from everywhere.
type outcome struct {
	Told       []string
	Logged     []string
	Traced     []string
	Statements [][]string // by wire
	RoundTrips []int
	Sessions   []int
	Tables     []string
	InUse      int
}

// place is where a side lives.
type place struct{ dsn, schema string }

func (p place) options() []pgtest.Option {
	if p.schema == "" {
		return []pgtest.Option{pgtest.Through(p.dsn)}
	}
	return []pgtest.Option{pgtest.Through(p.dsn), pgtest.Param("search_path", p.schema)}
}

// through is the same place behind a wire that is counted.
func (p place) through(t *testing.T, s *side) place {
	t.Helper()
	wire, dsn := pgtest.Tap(t, p.dsn)
	s.wires = append(s.wires, wire)
	return place{dsn, p.schema}
}

// newPlace is an empty one: a schema, or a database where poolers know no schemas.
func newPlace(t *testing.T, database bool) place {
	t.Helper()
	if database {
		return place{dsn: pgtest.Database(t)}
	}
	p := place{pgtest.DSN(t), "side_" + strings.ToLower(rand.Text())}
	admin := pgtest.Conn(t)
	if _, err := admin.Exec(t.Context(), "CREATE SCHEMA "+p.schema); err != nil {
		t.Fatal(err)
	}
	return p
}

// open is a side with its tables filled. Without the plugin gormlock is nil.
func open(t *testing.T, c setup, plugin *gormlock.Plugin) *side {
	t.Helper()
	at := newPlace(t, c.pooler)
	s := &side{at: at, log: &logbook{}, admin: pgtest.Conn(t, at.options()...)}
	furnish(t, s, at)
	if c.pooler {
		at.dsn = pooler(t, at.dsn)
	}
	s.wired = at.through(t, s)
	s.db = c.connect(t, s, s.wired)
	var plugins []gorm.Plugin
	if c.beside != nil {
		plugins = append(plugins, c.beside(t, s, at))
	}
	if plugin != nil {
		t.Cleanup(func() { _ = plugin.Close() })
		plugins = append(plugins, plugin)
	}
	if c.gormlockFirst && len(plugins) == 2 {
		plugins[0], plugins[1] = plugins[1], plugins[0]
	}
	for _, p := range plugins {
		if err := s.db.Use(p); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// furnish makes the tables and fills them; the function refill puts them back into that state.
func furnish(t *testing.T, s *side, at place) {
	t.Helper()
	db := pgtest.Open(t, append(at.options(), pgtest.SimpleProtocol(), pgtest.Config(func(c *gorm.Config) { c.NowFunc = now }))...)
	if err := db.Migrator().CreateTable(tables()...); err != nil {
		t.Fatal(err)
	}
	if err := db.Exec(joinTable).Error; err != nil {
		t.Fatal(err)
	}
	if err := seed(db); err != nil {
		t.Fatal(err)
	}
	sql := "CREATE FUNCTION refill() RETURNS void LANGUAGE sql AS $$\n"
	for _, name := range slices.Backward(names) {
		sql += "DELETE FROM " + name + ";\n"
	}
	for _, name := range names {
		if err := db.Exec(fmt.Sprintf("CREATE TABLE first_%[1]s AS TABLE %[1]s", name)).Error; err != nil {
			t.Fatal(err)
		}
		sql += fmt.Sprintf("INSERT INTO %[1]s SELECT * FROM first_%[1]s;\n", name)
	}
	sql += "$$; CREATE FUNCTION rewind() RETURNS void LANGUAGE sql AS $$\n"
	for _, name := range names {
		if db.Migrator().HasColumn(name, "id") {
			sql += fmt.Sprintf("SELECT setval(pg_get_serial_sequence('%[1]s', 'id'), 1000 + (SELECT coalesce(max(id), 1) FROM %[1]s));\n", name)
		}
	}
	if err := db.Exec(sql + "$$").Error; err != nil {
		t.Fatal(err)
	}
	s.first = s.contents(t)
}

// disorder moves the first row of each table behind the others, as any update does: in which order rows come that nobody
// sorts is nothing that the two sides have in common.
func (s *side) disorder(t *testing.T) {
	t.Helper()
	for _, name := range names {
		key := "id"
		switch name {
		case "prices":
			key = "shop"
		case "languages":
			key = "code"
		case "person_languages":
			key = "person_id"
		}
		if _, err := s.admin.Exec(t.Context(), fmt.Sprintf("UPDATE %[1]s SET %[2]s = %[2]s WHERE ctid = (SELECT min(ctid) FROM %[1]s)", name, key)); err != nil {
			t.Fatal(err)
		}
	}
}

// contents are all rows of all tables.
func (s *side) contents(t *testing.T) []string {
	t.Helper()
	var parts, rows []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("ARRAY(SELECT '%[1]s ' || r FROM %[1]s r ORDER BY r::text)", name))
	}
	if err := s.admin.QueryRow(t.Context(), "SELECT "+strings.Join(parts, " || ")).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// perform does o from the first state on.
func (s *side) perform(t *testing.T, o operation, simple bool) outcome {
	t.Helper()
	back := "SELECT rewind()"
	if !slices.Equal(s.now, s.first) {
		back += ", refill()"
	}
	if _, err := s.admin.Exec(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	if s.disorderly {
		s.disorder(t)
	}
	s.resetWires()
	s.log.take()
	if s.spans != nil {
		s.spans.Reset()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	p := &play{db: s.db.WithContext(ctx), ctx: ctx, simple: simple}
	o.do(p)
	done := outcome{Told: p.told, Logged: s.log.take(), Traced: s.traced()}
	for _, wire := range s.wires {
		done.Statements = append(done.Statements, wire.Statements())
		done.RoundTrips = append(done.RoundTrips, wire.RoundTrips())
		done.Sessions = append(done.Sessions, wire.Opened())
	}
	if c := s.admin.Config(); c.Database != "" { // in the queries of the migrator
		for _, lines := range append(done.Statements, done.Logged) {
			for i := range lines {
				lines[i] = strings.ReplaceAll(lines[i], c.Database, "database")
			}
		}
	}
	s.now = s.contents(t)
	done.Tables = s.now
	pool, err := s.db.DB()
	if err != nil {
		t.Fatal(err)
	}
	done.InUse = pool.Stats().InUse
	return done
}

func (s *side) resetWires() {
	for _, wire := range s.wires {
		wire.Reset()
	}
}

// traced is what the spans say, but for where the server is.
func (s *side) traced() []string {
	if s.spans == nil {
		return nil
	}
	var all []string
	for _, span := range s.spans.Ended() {
		line := span.Name() + " " + span.Status().Code.String()
		for _, a := range span.Attributes() {
			if !strings.HasPrefix(string(a.Key), "server.") {
				line += fmt.Sprintf(" %s=%s", a.Key, a.Value.String())
			}
		}
		all = append(all, line)
	}
	return all
}

// logbook keeps what GORM logs.
type logbook struct {
	mu    sync.Mutex
	lines []string
}

func (l *logbook) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *logbook) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

func (l *logbook) LogMode(logger.LogLevel) logger.Interface { return l }

func (l *logbook) Info(_ context.Context, format string, args ...any) {
	l.add("info: " + fmt.Sprintf(format, args...))
}

func (l *logbook) Warn(_ context.Context, format string, args ...any) {
	l.add("warning: " + fmt.Sprintf(format, args...))
}

func (l *logbook) Error(_ context.Context, format string, args ...any) {
	l.add("error: " + fmt.Sprintf(format, args...))
}

func (l *logbook) Trace(_ context.Context, _ time.Time, fc func() (string, int64), err error) {
	sql, rows := fc()
	l.add(fmt.Sprintf("%s | %d rows | %v", sql, rows, err))
}
