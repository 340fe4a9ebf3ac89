package dial

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Server is what a connection says about its server.
type Server struct {
	ID  string // differs between two servers, and two runs of one
	PID int    // of the backend, as in pg_locks

	standby  bool
	settings map[string]string // pg_settings by name, in their own units
}

const lookSQL = `SELECT pg_backend_pid(), pg_is_in_recovery(), pg_postmaster_start_time(), oid FROM pg_database WHERE datname = current_database();
SELECT name, setting FROM pg_settings WHERE context = 'user' OR name IN ('max_locks_per_transaction', 'max_connections', 'max_prepared_transactions', 'deadlock_timeout')`

func look(ctx context.Context, conn *pgconn.PgConn) (*Server, error) {
	results, err := conn.Exec(ctx, lookSQL).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("gormlock: look at the server: %w", err)
	}
	if len(results) != 2 || len(results[0].Rows) != 1 {
		return nil, errors.New("gormlock: look at the server: it answers like no PostgreSQL")
	}
	row := results[0].Rows[0]
	s := &Server{standby: string(row[1]) == "t", settings: map[string]string{}}
	s.ID = fmt.Sprintf("started %s, database %s", row[2], row[3])
	for _, r := range results[1].Rows {
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
