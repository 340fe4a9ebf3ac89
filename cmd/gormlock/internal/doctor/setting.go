package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/server"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
)

// timeout is a setting that ends sessions or waits.
type timeout struct{ name, does string }

var timeouts = []timeout{
	{"idle_session_timeout", "ends a session that holds a session lock and sends nothing for that long, and frees the lock"},
	{"idle_in_transaction_session_timeout", "ends a session whose transaction sends nothing for that long, with every lock of both"},
	{"transaction_timeout", "ends a session whose transaction lasts that long, with every lock of both"},
	{"statement_timeout", "ends a wait for a lock after that long, and a session lock can be held after that error"},
	{"lock_timeout", "ends a wait for a lock after that long, and a session lock can be held after that error"},
}

// setting is a row of pg_settings.
type setting struct{ name, value, unit, source string }

// settings are the settings of this session, by name. Settings that the server does not know are missing.
func (x *examination) settings(ctx context.Context, names []string) (map[string]setting, error) {
	rows, err := x.conn.Query(ctx, "SELECT name, setting, coalesce(unit, ''), source FROM pg_settings WHERE name = ANY ($1)", names)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (s setting, err error) {
		err = r.Scan(&s.name, &s.value, &s.unit, &s.source)
		return s, err
	})
	known := map[string]setting{}
	for _, s := range list {
		known[s.name] = s
	}
	return known, err
}

func (x *examination) checkTimeouts(ctx context.Context) error {
	var names []string
	for _, t := range timeouts {
		names = append(names, t.name)
	}
	known, err := x.settings(ctx, names)
	if err != nil {
		return err
	}
	var off []string
	for _, t := range timeouts {
		s, there := known[t.name]
		switch {
		case !there:
		case s.value == "0":
			off = append(off, t.name)
		default:
			x.add(finding{
				Check: t.name, Status: warning, Says: fmt.Sprintf("%s in this session (from %s): it %s", s.text(), s.from(), t.does),
				Cure: fmt.Sprintf("ALTER ROLE %s SET %s = 0; -- the role that takes session locks; package sessionlock does it for its own sessions",
					pgx.Identifier{x.server.Role}.Sanitize(), t.name),
			})
		}
	}
	if len(off) > 0 {
		x.well("timeouts", "%s: off in this session", strings.Join(off, ", "))
	}
	return x.checkOtherRoles(ctx, names)
}

// checkOtherRoles reads what ALTER ROLE and ALTER DATABASE have set for other roles and databases than this session's: the program may connect as
// one of them.
func (x *examination) checkOtherRoles(ctx context.Context, names []string) error {
	rows, err := x.conn.Query(ctx, `SELECT coalesce(r.rolname, ''), coalesce(d.datname, ''), split_part(c, '=', 1), substr(c, strpos(c, '=') + 1)
		FROM pg_db_role_setting s CROSS JOIN unnest(s.setconfig) AS c
		LEFT JOIN pg_roles r ON r.oid = s.setrole LEFT JOIN pg_database d ON d.oid = s.setdatabase
		WHERE s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
		AND s.setrole <> 0 AND r.rolname <> session_user AND split_part(c, '=', 1) = ANY ($1) AND substr(c, strpos(c, '=') + 1) !~ '^0[a-z]*$'
		ORDER BY 1, 2, 3`, names)
	if err != nil {
		return err
	}
	var role, database, name, value string
	_, err = pgx.ForEachRow(rows, []any{&role, &database, &name, &value}, func() error {
		scope := "ALTER ROLE " + pgx.Identifier{role}.Sanitize()
		if database != "" {
			scope += " IN DATABASE " + pgx.Identifier{database}.Sanitize()
		}
		for _, t := range timeouts {
			if t.name == name {
				x.add(finding{
					Check: name, Status: warning, Says: fmt.Sprintf("%s for the role %s: it %s", value, role, t.does),
					Cure: scope + " SET " + name + " = 0; -- if that role takes session locks; package sessionlock does it for its own sessions",
				})
			}
		}
		return nil
	})
	return err
}

// checkNetwork says how long the locks of a silent holder last. Package sessionlock sets all of this for its own sessions, so it is only a note.
func (x *examination) checkNetwork(ctx context.Context) error {
	known, err := x.settings(ctx, []string{
		"tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout", "client_connection_check_interval",
	})
	if err != nil {
		return err
	}
	if strings.HasPrefix(server.Address(&x.config.Config), "/") {
		x.well("network", "a local socket, which does not go silent")
	} else {
		x.checkKeepalives(known)
	}
	if s, there := known["client_connection_check_interval"]; there && s.value == "0" {
		x.add(finding{
			Check: "client_connection_check_interval", Status: note,
			Says: "0: a request whose program has died stays in the queue, and is granted the lock for nobody",
			Cure: "ALTER SYSTEM SET client_connection_check_interval = '2s';\nSELECT pg_reload_conf(); -- package sessionlock does it for its own sessions",
		})
	} else if there {
		x.well("client_connection_check_interval", "%s", s.text())
	}
	return nil
}

// keepalives frees the locks of a silent holder after a minute and a half.
const keepalives = `ALTER SYSTEM SET tcp_keepalives_idle = 60;
ALTER SYSTEM SET tcp_keepalives_interval = 10;
ALTER SYSTEM SET tcp_keepalives_count = 3;
SELECT pg_reload_conf(); -- package sessionlock frees them within 15 s for its own sessions`

func (x *examination) checkKeepalives(known map[string]setting) {
	const long = 5 * time.Minute
	idle, interval, probes := known["tcp_keepalives_idle"], known["tcp_keepalives_interval"], known["tcp_keepalives_count"]
	silence := idle.duration() + interval.duration()*time.Duration(probes.number())
	says := fmt.Sprintf("a holder whose network went silent keeps its locks for about %s: tcp_keepalives_idle %s, interval %s, count %s, tcp_user_timeout %s",
		terminal.Span(silence), idle.text(), interval.text(), probes.value, known["tcp_user_timeout"].text())
	switch {
	case idle.number() == 0:
		x.add(finding{Check: "network", Status: note, Says: "the server does not say when it notices that a holder's network went silent",
			Cure: keepalives})
	case silence > long:
		x.add(finding{Check: "network", Status: note, Says: says, Cure: keepalives})
	default:
		x.well("network", "%s", says)
	}
}

func (s setting) number() int64 {
	var n int64
	_, _ = fmt.Sscan(s.value, &n) // not a number: 0
	return n
}

func (s setting) duration() time.Duration {
	units := map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "min": time.Minute}
	return time.Duration(s.number()) * units[s.unit]
}

// text is the value in the form that people use.
func (s setting) text() string {
	if s.value == "0" || s.duration() == 0 {
		return s.value
	}
	return s.duration().String()
}

// from says where the value was set.
func (s setting) from() string {
	switch s.source {
	case "client", "session":
		return "the connection itself"
	case "configuration file":
		return "the server's configuration"
	case "user", "database user":
		return "the role"
	}
	return "the " + s.source
}
