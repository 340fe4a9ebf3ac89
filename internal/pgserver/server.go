package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	host      = "127.0.0.1"
	superuser = "postgres"

	readyWithin = 60 * time.Second
	endWithin   = 30 * time.Second
)

// ErrStopped is returned by every method that needs a server after Stop.
var ErrStopped = errors.New("pgserver: the server is stopped and its data removed")

// Server is a throw-away PostgreSQL server. Its methods may be called from several
// goroutines; those that start and end it wait for each other.
type Server struct {
	install  installation
	account  account
	dir      string // holds data/ and the log
	port     int
	watchdog *watchdog

	mu      sync.Mutex
	process *postmaster // nil while the server is down
	paused  bool
	stopped bool
}

// Start makes a cluster and starts a server on it. On failure nothing is left behind
// and the error holds the end of the server's log, or names what to do where no
// PostgreSQL was found. The server outlives ctx, which bounds the start alone.
func Start(ctx context.Context, opts ...Option) (*Server, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	a, err := findAccount()
	if err != nil {
		return nil, err
	}
	install, err := findInstallation(ctx, a, c)
	if err != nil {
		return nil, err
	}
	s, err := prepare(a, install, a.parents(c.synced())...)
	if err != nil {
		return nil, err
	}
	if err := s.create(ctx, c); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// prepare makes the directory of a server and sets a watchdog on it.
func prepare(a account, install installation, parents ...string) (*Server, error) {
	dir, w, err := a.makeDir(parents...)
	if err != nil {
		return nil, err
	}
	return &Server{install: install, account: a, dir: dir, watchdog: w}, nil
}

func (s *Server) create(ctx context.Context, c *config) error {
	if err := s.initialize(ctx); err != nil {
		return err
	}
	own := []setting{{"listen_addresses", host}, {"unix_socket_directories", ""}}
	if err := s.configure(append(append(own, defaults...), c.settings...)); err != nil {
		return err
	}
	return s.firstStart(ctx)
}

// configure adds settings to postgresql.conf, where the last line of a name wins.
func (s *Server) configure(settings []setting) error {
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("pgserver: %w", err)
	}
	for _, setting := range settings {
		_, err = f.WriteString(setting.line())
		if err != nil {
			break
		}
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("pgserver: %w", err)
	}
	return nil
}

// firstStart finds a port: between our look and the server's somebody else may take it.
func (s *Server) firstStart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for attempt := 1; ; attempt++ {
		var err error
		if s.port, err = freePort(); err != nil {
			return err
		}
		err = s.launch(ctx)
		if attempt == 10 || !errors.Is(err, errTaken) {
			return err
		}
	}
}

// errTaken is in the error of launch when something of an earlier or another
// server is in the way: the port, or memory still in use by backends that are ending.
var errTaken = errors.New("port or memory still in use")

// launch starts the server on s.port and returns when it answers.
func (s *Server) launch(ctx context.Context) error {
	logged := s.logSize()
	p, err := s.spawn()
	if err != nil {
		return err
	}
	err = p.ready(ctx, s)
	if err == nil {
		s.process = p
		err = s.ping(ctx)
	}
	if err == nil {
		return nil
	}
	s.process = nil
	_ = p.signal(syscall.SIGQUIT)
	if !p.gone() {
		_ = p.signal(syscall.SIGKILL)
		p.gone()
	}
	log := s.logSince(logged)
	if strings.Contains(log, "could not bind") || strings.Contains(log, "still in use") {
		err = errors.Join(err, errTaken)
	}
	return fmt.Errorf("pgserver: start on port %d: %w\n%s", s.port, err, tail([]byte(log)))
}

func (s *Server) ping(ctx context.Context) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

func (s *Server) connect(ctx context.Context) (*pgx.Conn, error) {
	return pgx.Connect(ctx, s.DSN("postgres"))
}

// session is connect for those who cannot know that the server is stopped.
func (s *Server) session(ctx context.Context) (*pgx.Conn, error) {
	s.mu.Lock()
	stopped := s.stopped
	s.mu.Unlock()
	if stopped {
		return nil, ErrStopped
	}
	return s.connect(ctx)
}

// DSN returns the connection string of a database, which need not exist.
func (s *Server) DSN(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.User(superuser),
		Host:     net.JoinHostPort(host, strconv.Itoa(s.port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// CreateDatabase creates an empty database and returns its connection string.
func (s *Server) CreateDatabase(ctx context.Context, name string) (string, error) {
	conn, err := s.session(ctx)
	if err != nil {
		return "", fmt.Errorf("pgserver: create database %s: %w", name, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "create database "+pgx.Identifier{name}.Sanitize()); err != nil {
		return "", fmt.Errorf("pgserver: create database %s: %w", name, err)
	}
	return s.DSN(name), nil
}

// Host returns the address the server listens on, always that of the loopback.
func (s *Server) Host() string { return host }

// Port returns the port the server listens on, the same after every Restart.
func (s *Server) Port() int { return s.port }

// Version returns the server's version, as in "15.13".
func (s *Server) Version() string { return s.install.version }

// Major returns the first number of the server's version.
func (s *Server) Major() int { return s.install.major }

// PID returns the process id of the server, 0 while it is down.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil || !s.process.alive() {
		return 0
	}
	return s.process.pid
}

func (s *Server) data() string    { return filepath.Join(s.dir, "data") }
func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }

func (s *Server) logSize() int64 {
	info, err := os.Stat(s.logFile())
	if err != nil {
		return 0
	}
	return info.Size()
}

func (s *Server) logSince(offset int64) string {
	text, err := os.ReadFile(s.logFile())
	if err != nil || int64(len(text)) < offset {
		return ""
	}
	return string(text[offset:])
}

// Log returns what the server wrote to its log since it was made.
func (s *Server) Log() string { return s.logSince(0) }

// tail is the end of a program's output, enough to see why it failed.
func tail(out []byte) string {
	const most = 3000
	if len(out) > most {
		out = append([]byte("…"), out[len(out)-most:]...)
	}
	return strings.TrimSpace(string(out))
}

// cause is the context's error where it ended, instead of "signal: killed".
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
