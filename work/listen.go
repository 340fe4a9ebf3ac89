package work

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errNoListen says that no session can receive notifications here.
var errNoListen = errors.New("gormlock: work: LISTEN is not possible")

// ear is a worker that wants to hear of new jobs.
type ear struct {
	db     *sql.DB
	table  string // quoted
	oid    string
	wake   func(hints) // nil hints: look everywhere
	report func(error) // called with the reason when there are no notifications, and with nil when they come again

	// under ears.Mutex
	deaf  bool // it gets no notifications from the server
	warns bool // it has reported that
}

// ears are the ears of a process.
type ears struct {
	sync.Mutex
	all   map[*ear]struct{}
	lines map[string]*line
}

var local = ears{all: map[*ear]struct{}{}, lines: map[string]*line{}}

// wake wakes the workers of this process that get no notifications from the server.
func (s *ears) wake(db *sql.DB, table string, heard hints) {
	s.Lock()
	var told []*ear
	for e := range s.all {
		if e.deaf && e.db == db && e.table == table {
			told = append(told, e)
		}
	}
	s.Unlock()
	for _, e := range told {
		e.wake(heard)
	}
}

// line is the one connection of this process that listens on a database.
type line struct {
	key      string
	database string
	ears     map[*ear]struct{}
	stop     context.CancelFunc
	over     chan struct{}
	heard    bool  // it listens
	failed   error // why there is no connection, or nil
}

const (
	pauseFirst = 50 * time.Millisecond // after a connection that failed, doubled each time up to pauseMost
	pauseMost  = 5 * time.Second
)

// add makes e be woken when this process has new jobs, until remove is called.
func (s *ears) add(e *ear) {
	s.Lock()
	defer s.Unlock()
	e.deaf = true
	s.all[e] = struct{}{}
}

// join connects e to a line, and tries again until it can or ctx ends.
func (s *ears) join(ctx context.Context, e *ear) *line {
	for pause := pauseFirst; ctx.Err() == nil; pause = min(2*pause, pauseMost) {
		oid, err := oidOf(ctx, e.db, e.table)
		var config *pgx.ConnConfig
		if err == nil {
			config, err = configOf(ctx, e.db)
		}
		if err == nil {
			e.oid = oid
			return s.lineFor(ctx, e, config)
		}
		if s.tell(e, err); errors.Is(err, errNoListen) {
			pause = time.Minute
		}
		rest(ctx, pause)
	}
	return nil
}

// lineFor returns the one connection that serves all ears of this process on a database.
func (s *ears) lineFor(ctx context.Context, e *ear, config *pgx.ConnConfig) *line {
	key := fmt.Sprintf("%s:%d/%s %s", config.Host, config.Port, config.Database, config.User)
	s.Lock()
	l := s.lines[key]
	if l == nil {
		ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
		l = &line{key: key, database: config.Database, ears: map[*ear]struct{}{}, stop: stop, over: make(chan struct{})}
		s.lines[key] = l
		defer func() { go s.keep(ctx, l) }()
	}
	l.ears[e] = struct{}{}
	e.deaf = !l.heard
	heard, failed := l.heard, l.failed
	s.Unlock()
	if heard || failed != nil {
		s.tell(e, failed)
	}
	return l
}

// tell makes e report the first failure of a series, and later the end of the series.
func (s *ears) tell(e *ear, failed error) {
	s.Lock()
	changed := e.warns != (failed != nil)
	e.warns = failed != nil
	s.Unlock()
	if changed {
		e.report(failed)
	}
}

func (s *ears) remove(e *ear, l *line) {
	s.Lock()
	delete(s.all, e)
	last := false
	if l != nil {
		delete(l.ears, e)
		if last = len(l.ears) == 0 && s.lines[l.key] == l; last {
			delete(s.lines, l.key)
		}
	}
	s.Unlock()
	if last {
		l.stop()
		<-l.over
	}
}

// pools are the pools of the ears of a line. Some may be closed before their worker ends.
func (s *ears) pools(l *line) (all []*sql.DB) {
	s.Lock()
	defer s.Unlock()
	for e := range l.ears {
		if !slices.Contains(all, e.db) {
			all = append(all, e.db)
		}
	}
	return all
}

// keep listens until there are no ears. When a connection ends, it opens another one.
func (s *ears) keep(ctx context.Context, l *line) {
	defer close(l.over)
	for pause := pauseFirst; ctx.Err() == nil; pause = min(2*pause, pauseMost) {
		began := time.Now()
		var failed error
		listened := false
		for _, db := range s.pools(l) {
			err := s.listen(ctx, l, db)
			if ctx.Err() != nil {
				return
			}
			if s.ended(l) {
				listened = true
				continue
			}
			if failed = err; errors.Is(err, errNoListen) {
				pause = time.Minute
				break
			}
		}
		if failed != nil && !listened { // a closed pool does not matter if another one listens
			s.told(l, false, failed)
		}
		if time.Since(began) > time.Minute {
			pause = pauseFirst
		}
		rest(ctx, pause)
	}
}

// ended notes that the connection has ended, and reports whether it had listened.
func (s *ears) ended(l *line) (listened bool) {
	s.Lock()
	listened = l.heard
	s.Unlock()
	if listened {
		s.told(l, false, nil)
	}
	return listened
}

// told notes whether the connection listens, and why it could not be opened.
func (s *ears) told(l *line, heard bool, failed error) {
	s.Lock()
	l.heard, l.failed = heard, failed
	all := make([]*ear, 0, len(l.ears))
	for e := range l.ears {
		e.deaf = !heard
		all = append(all, e)
	}
	s.Unlock()
	for _, e := range all {
		if heard || failed != nil {
			s.tell(e, failed)
		}
	}
}

// listen listens on one connection until that ends. The connection is not from the pool.
func (s *ears) listen(ctx context.Context, l *line, db *sql.DB) error {
	config, err := configOf(ctx, db)
	if err != nil {
		return err
	}
	config.RuntimeParams["application_name"] = "gormlock work"
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) { s.hear(l, n.Payload) }
	dialing, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	conn, err := pgx.ConnectConfig(dialing, config)
	if err != nil {
		return err
	}
	defer func() {
		closing, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		_ = conn.Close(closing)
	}()
	if err := steady(dialing, conn, db); err != nil {
		return err
	}
	if _, err := conn.PgConn().Exec(dialing, "SET idle_session_timeout = 0; LISTEN "+channel).ReadAll(); err != nil {
		return err
	}
	s.told(l, true, nil)
	s.hear(l, "")
	for {
		waiting, stop := context.WithTimeout(ctx, 15*time.Second)
		err := conn.PgConn().WaitForNotification(waiting)
		quiet := waiting.Err() != nil
		stop()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !quiet:
			return err
		case quiet:
			asking, stop := context.WithTimeout(ctx, 10*time.Second)
			err := conn.PgConn().Ping(asking)
			stop()
			if err != nil {
				return err
			}
		}
	}
}

// hear wakes the workers whose table a payload names. An empty payload wakes all.
func (s *ears) hear(l *line, payload string) {
	oid, rest, _ := strings.Cut(payload, " ")
	s.Lock()
	var told []*ear
	for e := range l.ears {
		if oid == "" || oid == e.oid {
			told = append(told, e)
		}
	}
	s.Unlock()
	heard := readHints(rest)
	for _, e := range told {
		e.wake(heard)
	}
}

// steady refuses a pooler that gives server connections to other clients between statements. With such a pooler, two idle connections get the same
// server connection, or one connection gets a different one than before.
func steady(ctx context.Context, conn *pgx.Conn, db *sql.DB) error {
	backend := func(row interface{ Scan(...any) error }) (pid uint32, err error) { return pid, row.Scan(&pid) }
	const ask = "SELECT pg_backend_pid()"
	simple := pgx.QueryExecModeSimpleProtocol
	first, err := backend(conn.QueryRow(ctx, ask, simple))
	if err != nil || first == conn.PgConn().PID() {
		return err
	}
	for range 3 {
		other, err := backend(db.QueryRowContext(ctx, ask))
		if err != nil {
			return err
		}
		again, err := backend(conn.QueryRow(ctx, ask, simple))
		if err != nil {
			return err
		}
		if again != first || other == first {
			return fmt.Errorf("%w: there is a pooler in transaction mode in between", errNoListen)
		}
	}
	return nil
}

// configOf returns the connection settings of the pool.
func configOf(ctx context.Context, db *sql.DB) (config *pgx.ConnConfig, err error) {
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	err = conn.Raw(func(driver any) error {
		if c, ok := driver.(interface{ Conn() *pgx.Conn }); ok {
			config = c.Conn().Config()
			return nil
		}
		return fmt.Errorf("%w: the driver is %T, not pgx", errNoListen, driver)
	})
	return config, err
}

// oidOf returns the number by which announcements name a table.
func oidOf(ctx context.Context, db *sql.DB, table string) (string, error) {
	var oid int64
	err := db.QueryRowContext(ctx, "SELECT to_regclass($1)::oid::bigint", table).Scan(&oid)
	return strconv.FormatInt(oid, 10), err
}
