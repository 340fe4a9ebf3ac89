package dial

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// rowTimeout is how long a statement waits for a token row that somebody has locked. Then the other tokens are issued
// without it.
const rowTimeout = 50 * time.Millisecond

// settings make sure that nothing but the end of a session takes its locks, and that the server notices the end of a
// session later than the manager does. docs/internals/sessionlock-waiting.md has the arithmetic, in the section Silence.
func (d *Dialer) settings(r wire.Role) [][2]string {
	h := d.Heartbeat
	seconds := func(d time.Duration) string { return strconv.Itoa(int((d + time.Second - 1) / time.Second)) }
	milliseconds := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	wanted := [][2]string{
		{"application_name", "gormlock " + d.Owner},
		{"idle_session_timeout", "0"},
		{"idle_in_transaction_session_timeout", "0"},
		{"statement_timeout", "0"},
		{"transaction_timeout", "0"},
		{"lock_timeout", "0"},
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_read_only", "off"},
		{"default_transaction_deferrable", "off"},
		{"plan_cache_mode", "force_generic_plan"},
		{"jit", "off"},
		{"tcp_keepalives_idle", seconds(3 * h)},
		{"tcp_keepalives_interval", seconds(h)},
		{"tcp_keepalives_count", "2"},
		{"tcp_user_timeout", milliseconds(5 * h)},
		{"client_connection_check_interval", milliseconds(h)},
	}
	if r == wire.Issuer {
		return append(wanted, [][2]string{
			{"client_min_messages", "warning"}, // a warning says that a commit did not wait for the standby
			{"synchronous_commit", "on"},
			{"lock_timeout", milliseconds(rowTimeout)},
			// The plan is made before the number of keys is known: each key by the index.
			{"enable_seqscan", "off"},
			{"enable_hashjoin", "off"},
			{"enable_mergejoin", "off"},
		}...)
	}
	return append(wanted, [2]string{"client_min_messages", "error"})
}

// mayFail are the settings that a server refuses on some systems.
var mayFail = map[string]bool{"client_connection_check_interval": true, "tcp_user_timeout": true, "jit": true}

// set applies the settings that the server knows, in one round trip for those that must
// succeed.
func (d *Dialer) set(ctx context.Context, conn *pgconn.PgConn, s *Server, r wire.Role) error {
	const setSQL = "SELECT pg_catalog.set_config($1, $2, false)"
	must := &pgconn.Batch{}
	for _, w := range d.settings(r) {
		current, known := s.settings[w[0]]
		if !known {
			continue // a setting of a later version
		}
		if w[0] == "synchronous_commit" && current != "off" {
			w[1] = current // as strong already; set nevertheless, because the server's setting may change
		}
		args := [][]byte{[]byte(w[0]), []byte(w[1])}
		if !mayFail[w[0]] {
			must.ExecParams(setSQL, args, nil, nil, nil)
			continue
		}
		conn.ExecParams(ctx, setSQL, args, nil, nil, nil).Read()
	}
	if err := conn.ExecBatch(ctx, must).Close(); err != nil {
		return fmt.Errorf("gormlock: settings of the session: %w", err)
	}
	return nil
}
