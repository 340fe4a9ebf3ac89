package dial

import (
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// L4, L13, L14, P13: what a session of each role has set, and that the server frees a
// silent holder's locks no sooner than 5h after it heard from us, when we know since 3h.
func TestSession_settings(t *testing.T) {
	t.Parallel()
	config, err := pgx.ParseConfig(pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	d := &Dialer{Config: config, Owner: "me", Heartbeat: 3 * time.Second}
	for name, r := range map[string]wire.Role{"home": wire.Home, "waiter": wire.Waiter, "issuer": wire.Issuer} {
		conn, server, err := d.connect(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { drop(conn) })
		if err := d.set(t.Context(), conn, server, r); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			"application_name": "gormlock me", "idle_session_timeout": "0", "statement_timeout": "0", "transaction_timeout": "0",
			"idle_in_transaction_session_timeout": "0", "default_transaction_isolation": "read committed", "default_transaction_read_only": "off",
			"tcp_keepalives_idle": "9", "tcp_keepalives_interval": "3", "tcp_keepalives_count": "2", "tcp_user_timeout": "15000",
			"client_connection_check_interval": "3000", "lock_timeout": "0", "client_min_messages": "error",
		}
		if r == wire.Issuer {
			want["lock_timeout"], want["client_min_messages"], want["synchronous_commit"] = "50", "warning", "on"
		}
		for setting, wanted := range want {
			got, err := value(t.Context(), conn, "SELECT coalesce((SELECT setting FROM pg_settings WHERE name = '"+setting+"'), 'missing')")
			if err != nil || got != wanted && got != "missing" {
				t.Errorf("%s: %s is %s, %v, want %s", name, setting, got, err, wanted)
			}
			if _, known := server.settings[setting]; !known && setting != "transaction_timeout" {
				t.Errorf("%s: the server knows no %s", name, setting)
			}
		}
		// Whatever becomes of the server's configuration, which a session follows that has set
		// nothing itself.
		if source, err := value(t.Context(), conn, "SELECT source FROM pg_settings WHERE name = 'synchronous_commit'"); r == wire.Issuer && source != "session" {
			t.Errorf("synchronous_commit comes from %s, %v", source, err)
		}
		number := func(setting string) int {
			got, _ := value(t.Context(), conn, "SELECT setting FROM pg_settings WHERE name = '"+setting+"'")
			n, _ := strconv.Atoi(got)
			return n
		}
		probes := number("tcp_keepalives_idle") + number("tcp_keepalives_interval")*number("tcp_keepalives_count")
		least := min(time.Duration(probes)*time.Second, time.Duration(number("tcp_user_timeout"))*time.Millisecond)
		if least < d.Silence()+2*d.Heartbeat {
			t.Errorf("%s: the server may free a lock after %s, and we know after %s", name, least, d.Silence())
		}
	}
}
