package sessionlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// facts is what a connection says about its server.
type facts struct {
	pid      int
	standby  bool
	server   string            // differs between two servers, and two runs of one
	settings map[string]string // pg_settings by name, in their own units
}

const lookSQL = `SELECT pg_backend_pid(), pg_is_in_recovery(), pg_postmaster_start_time(), oid FROM pg_database WHERE datname = current_database();
SELECT name, setting FROM pg_settings WHERE context = 'user' OR name IN ('max_locks_per_transaction', 'max_connections', 'max_prepared_transactions', 'deadlock_timeout')`

func look(ctx context.Context, conn *pgconn.PgConn) (*facts, error) {
	results, err := conn.Exec(ctx, lookSQL).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("gormlock: look at the server: %w", err)
	}
	if len(results) != 2 || len(results[0].Rows) != 1 {
		return nil, errors.New("gormlock: look at the server: it answers like no PostgreSQL")
	}
	row := results[0].Rows[0]
	f := &facts{standby: string(row[1]) == "t", settings: map[string]string{}}
	f.server = fmt.Sprintf("started %s, database %s", row[2], row[3])
	for _, r := range results[1].Rows {
		f.settings[string(r[0])] = string(r[1])
	}
	f.pid, err = strconv.Atoi(string(row[0]))
	return f, err
}

func (f *facts) number(setting string) int {
	n, _ := strconv.Atoi(f.settings[setting])
	return n
}

// tableSize is how many locks the server's lock table has room for.
func (f *facts) tableSize() int {
	return f.number("max_locks_per_transaction") * (f.number("max_connections") + f.number("max_prepared_transactions"))
}

var errUnsteady = fmt.Errorf("%w that changes the server connection between statements: use session mode", ErrPooler)

// probe tries on two connections whether they are two sessions whose locks exclude each
// other. A version string would not tell.
func probe(ctx context.Context, a, b *pgconn.PgConn, allowPooler bool) error {
	if allowPooler {
		if err := steady(ctx, a, b); err != nil {
			return err
		}
	}
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
			return fmt.Errorf("%w: %s answered %s where it must say %s", ErrNoExclusion, step.function, got, step.want)
		}
	}
	return nil
}

// steady refuses a pooler that hands the server connection on between statements: then
// two idle clients are given the same one, or one client two. The order of the
// questions follows no round.
func steady(ctx context.Context, a, b *pgconn.PgConn) error {
	seen := map[*pgconn.PgConn]int{}
	for _, conn := range []*pgconn.PgConn{a, b, b, a, a, a, b, a, b, b} {
		pid, err := backend(ctx, conn)
		if err != nil {
			return err
		}
		if seen[conn] != 0 && seen[conn] != pid {
			return errUnsteady
		}
		seen[conn] = pid
	}
	if seen[a] == seen[b] {
		return errUnsteady
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

// value is the one value a statement answers.
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
