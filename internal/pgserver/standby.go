package pgserver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Standby makes a streaming standby of the server, which answers reads and has
// replayed everything committed before the call when it is returned. It has its own
// directory and port, takes over the settings of the server, and is to be stopped on
// its own. On failure nothing is left behind.
func (s *Server) Standby(ctx context.Context, opts ...Option) (*Server, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if c.binDir != "" {
		return nil, errors.New("pgserver: a standby runs the binaries of its server, BinDir cannot be given")
	}
	standby, err := prepare(s.account, s.install)
	if err != nil {
		return nil, err
	}
	if err := standby.follow(ctx, s, c); err != nil {
		return nil, errors.Join(err, standby.Stop())
	}
	return standby, nil
}

func (s *Server) follow(ctx context.Context, primary *Server, c *config) error {
	out, err := s.account.command(ctx, s.dir, s.install.program("pg_basebackup"),
		"-D", s.data(), "-R", "-X", "stream", "-c", "fast", "--no-sync",
		"-h", host, "-p", strconv.Itoa(primary.port), "-U", superuser).CombinedOutput()
	if err != nil {
		return fmt.Errorf("pgserver: pg_basebackup: %w\n%s", cause(ctx, err), tail(out))
	}
	if err := s.configure(c.settings); err != nil {
		return err
	}
	if err := s.firstStart(ctx); err != nil {
		return err
	}
	return s.catchUp(ctx, primary)
}

// catchUp waits until all that the primary has written by now is visible here.
func (s *Server) catchUp(ctx context.Context, primary *Server) error {
	var target string
	if err := primary.queryRow(ctx, "select pg_current_wal_flush_lsn()::text", &target); err != nil {
		return fmt.Errorf("pgserver: standby: %w", err)
	}
	conn, err := s.connect(ctx)
	if err != nil {
		return fmt.Errorf("pgserver: standby: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var reached bool
	var queryErr error
	err = poll(ctx, readyWithin, func() bool {
		queryErr = conn.QueryRow(ctx, "select pg_last_wal_replay_lsn() >= $1::pg_lsn", target).Scan(&reached)
		return queryErr != nil || reached
	})
	if err := errors.Join(err, queryErr); err != nil {
		return fmt.Errorf("pgserver: standby on port %d has not reached %s: %w\n%s", s.port, target, err, tail([]byte(s.Log())))
	}
	return nil
}

// Promote makes a standby a server of its own, which takes writes when Promote returns.
func (s *Server) Promote(ctx context.Context) error {
	var done bool
	if err := s.queryRow(ctx, "select pg_promote(true, $1)", &done, int(readyWithin/time.Second)); err != nil {
		return fmt.Errorf("pgserver: promote: %w", err)
	}
	if !done {
		return fmt.Errorf("pgserver: promote: not done within %s", readyWithin)
	}
	return nil
}

func (s *Server) queryRow(ctx context.Context, sql string, into any, args ...any) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return conn.QueryRow(ctx, sql, args...).Scan(into)
}
