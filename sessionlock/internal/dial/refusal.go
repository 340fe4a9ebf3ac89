package dial

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/internal/lookalike"
)

// Refusals are the errors for servers on which a session lock would lie.
type Refusals struct {
	Pooler      error // a pooler stands in between, behind which a session lock stays with a server connection that others use
	Standby     error
	NoExclusion error // two sessions were granted one lock
}

// admit refuses a server by what it says of itself.
func (r *Refusals) admit(ctx context.Context, conn *pgconn.PgConn, s *Server, allowPooler bool, servers []string) error {
	name := lookalike.NameOf(s.version)
	switch {
	case name != "" && !lookalike.Allows(servers, name):
		return fmt.Errorf("%w: %s", lookalike.ErrServer, lookalike.Refusal(s.version))
	case s.standby:
		return fmt.Errorf("%w: connect to the primary, with target_session_attrs=read-write where the address names several servers", r.Standby)
	case allowPooler:
		return r.admitPooled(ctx, conn, s)
	case int(conn.PID()) != s.PID:
		return fmt.Errorf("%w: the connection has backend %d, the server says %d: connect to PostgreSQL itself, or to a pooler in session mode with AllowPooler", r.Pooler, conn.PID(), s.PID)
	}
	return nil
}

// admitPooled asks twice: if the backend of a connection changes, it is no session.
func (r *Refusals) admitPooled(ctx context.Context, conn *pgconn.PgConn, s *Server) error {
	pid, err := backend(ctx, conn)
	if err == nil && pid != s.PID {
		err = r.unsteady()
	}
	return err
}

func (r *Refusals) unsteady() error {
	return fmt.Errorf("%w that changes the server connection between statements: use session mode", r.Pooler)
}

// exclusive opens two connections and tests that they are two sessions whose locks exclude each other. The version string
// would not show it.
func (r *Refusals) exclusive(ctx context.Context, a, b *pgconn.PgConn) error {
	key := strconv.FormatUint(rand.Uint64()>>1, 10)
	for _, step := range []struct {
		conn     *pgconn.PgConn
		function string
		want     string
	}{
		{a, "pg_try_advisory_lock", "t"},
		{b, "pg_try_advisory_lock", "f"},
		{b, "pg_try_advisory_lock_shared", "f"},
		{b, "pg_try_advisory_xact_lock", "f"},
		{a, "pg_advisory_unlock", "t"},
		{a, "pg_advisory_unlock", "f"},
		{b, "pg_try_advisory_lock", "t"},
		{b, "pg_advisory_unlock", "t"},
	} {
		got, err := value(ctx, step.conn, "SELECT pg_catalog."+step.function+"("+key+")")
		if err != nil {
			return fmt.Errorf("gormlock: probe %s: %w", step.function, err)
		}
		if got != step.want {
			return fmt.Errorf("%w: %s answered %s where it must say %s", r.NoExclusion, step.function, got, step.want)
		}
	}
	return nil
}

// steady refuses a pooler that gives the server connection to others between statements. Then two idle clients get the
// same server connection, or one client gets two. The questions have an irregular order, so a pooler that takes turns is
// found too.
func (r *Refusals) steady(ctx context.Context, a, b *pgconn.PgConn) error {
	seen := map[*pgconn.PgConn]int{}
	for _, conn := range []*pgconn.PgConn{a, b, b, a, a, a, b, a, b, b} {
		pid, err := backend(ctx, conn)
		if err != nil {
			return err
		}
		if seen[conn] != 0 && seen[conn] != pid {
			return r.unsteady()
		}
		seen[conn] = pid
	}
	if seen[a] == seen[b] {
		return r.unsteady()
	}
	return nil
}

func backend(ctx context.Context, conn *pgconn.PgConn) (int, error) {
	text, err := value(ctx, conn, "SELECT pg_backend_pid()")
	if err != nil {
		return 0, fmt.Errorf("gormlock: look at the server: %w", err)
	}
	return strconv.Atoi(text)
}

// value returns the one value that a statement answers with.
func value(ctx context.Context, conn *pgconn.PgConn, sql string) (string, error) {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return "", err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) != 1 {
		return "", errors.New("not one value")
	}
	return string(results[0].Rows[0][0]), nil
}
