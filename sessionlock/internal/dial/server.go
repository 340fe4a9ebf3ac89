package dial

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/internal/lookalike"
)

// Server is what a connection says about its server.
type Server struct {
	ID  string // differs between two servers, and two runs of one
	PID int    // of the backend, as in pg_locks

	version  string // what version() says
	standby  bool
	settings map[string]string // pg_settings by name, in their own units
}

// A look-alike of PostgreSQL may understand only the first of these statements.
const lookSQL = `SELECT version();
SELECT pg_backend_pid(), pg_is_in_recovery(), pg_postmaster_start_time(), oid FROM pg_database WHERE datname = current_database();
SELECT name, setting FROM pg_settings WHERE context = 'user' OR name IN ('max_locks_per_transaction', 'max_connections', 'max_prepared_transactions', 'deadlock_timeout')`

func look(ctx context.Context, conn *pgconn.PgConn) (*Server, error) {
	results, err := conn.Exec(ctx, lookSQL).ReadAll()
	s := &Server{settings: map[string]string{}}
	if len(results) > 0 && len(results[0].Rows) == 1 {
		s.version = string(results[0].Rows[0][0])
	}
	if err != nil {
		if name := lookalike.NameOf(s.version); s.version != "" && name != "" {
			return nil, fmt.Errorf("%w: it is %s (%s), which lacks what a session lock needs: %w", lookalike.ErrServer, name, s.version, err)
		}
		return nil, fmt.Errorf("gormlock: look at the server: %w", err)
	}
	if len(results) != 3 || len(results[1].Rows) != 1 {
		return nil, errors.New("gormlock: look at the server: its answers are not those of PostgreSQL")
	}
	row := results[1].Rows[0]
	s.standby = string(row[1]) == "t"
	s.ID = fmt.Sprintf("started %s, database %s", row[2], row[3])
	for _, r := range results[2].Rows {
		s.settings[string(r[0])] = string(r[1])
	}
	s.PID, err = strconv.Atoi(string(row[0]))
	return s, err
}

func (s *Server) number(setting string) int {
	n, _ := strconv.Atoi(s.settings[setting])
	return n
}

// DeadlockTimeout is how long a statement may wait before the server looks for a deadlock.
func (s *Server) DeadlockTimeout() time.Duration {
	return time.Duration(s.number("deadlock_timeout")) * time.Millisecond
}

// LockTable is how many locks the server's lock table has room for.
func (s *Server) LockTable() int {
	return s.number("max_locks_per_transaction") * (s.number("max_connections") + s.number("max_prepared_transactions"))
}
