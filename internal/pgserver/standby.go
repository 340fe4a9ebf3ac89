package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
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
	conn, err := s.session(ctx)
	if err != nil {
		return nil, fmt.Errorf("pgserver: standby: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	standby, err := prepare(s.account, s.install, filepath.Dir(s.dir))
	if err != nil {
		return nil, err
	}
	if err := standby.follow(ctx, s, conn, c); err != nil {
		return nil, errors.Join(fmt.Errorf("pgserver: standby: %w", err), standby.Stop())
	}
	return standby, nil
}

// follow makes s a standby of the primary that conn leads to. The slot keeps the
// log that the standby needs until it streams; it goes with conn.
func (s *Server) follow(ctx context.Context, primary *Server, conn *pgx.Conn, c *config) error {
	slot := filepath.Base(s.dir)[len(dirPrefix):]
	if _, err := conn.Exec(ctx, "select pg_create_physical_replication_slot($1, true, true)", "standby_"+slot); err != nil {
		return err
	}
	if err := s.backup(ctx, primary, conn); err != nil {
		return err
	}
	source := "host=" + host + " port=" + fmt.Sprint(primary.port) + " user=" + superuser + " sslmode=disable"
	if err := s.configure(append([]setting{{"primary_conninfo", source}}, c.settings...)); err != nil {
		return err
	}
	if err := s.write("standby.signal", ""); err != nil {
		return err
	}
	if err := s.firstStart(ctx); err != nil {
		return err
	}
	return s.catchUp(ctx, conn)
}

// backup copies the primary's files while it runs. This is what pg_basebackup does,
// which is missing where only the server's own binaries are installed.
func (s *Server) backup(ctx context.Context, primary *Server, conn *pgx.Conn) error {
	start, stop := "pg_backup_start($1, fast => true)", "pg_backup_stop(wait_for_archive => false)"
	if primary.install.major < 15 {
		start, stop = "pg_start_backup($1, true, false)", "pg_stop_backup(false, false)"
	}
	if _, err := conn.Exec(ctx, "select "+start, "standby"); err != nil {
		return err
	}
	if err := s.account.copyCluster(ctx, primary.data(), s.data()); err != nil {
		return err
	}
	var label, tablespaces string
	if err := conn.QueryRow(ctx, "select labelfile, spcmapfile from "+stop).Scan(&label, &tablespaces); err != nil {
		return err
	}
	if tablespaces != "" {
		return errors.New("a server with tablespaces cannot have a standby here: both would write to the same directory")
	}
	return s.write("backup_label", label)
}

func (s *Server) write(name, text string) error {
	file := filepath.Join(s.data(), name)
	return errors.Join(os.WriteFile(file, []byte(text), 0o600), s.account.own(file))
}

// catchUp waits until all that the primary has written by now is visible here.
func (s *Server) catchUp(ctx context.Context, primary *pgx.Conn) error {
	var target string
	if err := primary.QueryRow(ctx, "select pg_current_wal_flush_lsn()::text").Scan(&target); err != nil {
		return err
	}
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var reached bool
	var queryErr error
	err = poll(ctx, readyWithin, func() bool {
		queryErr = conn.QueryRow(ctx, `select coalesce(pg_last_wal_replay_lsn() >= $1::pg_lsn, false)
			and exists (select from pg_stat_wal_receiver where status = 'streaming')`, target).Scan(&reached)
		return queryErr != nil || reached
	})
	if err := errors.Join(err, queryErr); err != nil {
		return fmt.Errorf("%s not reached: %w\n%s", target, err, tail([]byte(s.Log())))
	}
	return nil
}

// Promote makes a standby a server of its own, which takes writes when Promote returns.
func (s *Server) Promote(ctx context.Context) error {
	conn, err := s.session(ctx)
	if err != nil {
		return fmt.Errorf("pgserver: promote: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var done bool
	if err := conn.QueryRow(ctx, "select pg_promote(true, $1)", int(readyWithin/time.Second)).Scan(&done); err != nil {
		return fmt.Errorf("pgserver: promote: %w", err)
	}
	if !done {
		return fmt.Errorf("pgserver: promote: not done within %s", readyWithin)
	}
	return nil
}
