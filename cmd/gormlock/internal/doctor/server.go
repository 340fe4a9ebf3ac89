package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/server"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
	"github.com/gormlock/gormlock/internal/lookalike"
	"github.com/gormlock/gormlock/sessionlock"
)

// serverFacts says where the examination took place.
type serverFacts struct {
	Is       string `json:"is,omitempty"` // the name of a server that only looks like PostgreSQL
	Version  string `json:"version"`
	Number   int    `json:"version_num"`
	Database string `json:"database"`
	Role     string `json:"role"`
	Standby  bool   `json:"standby"`
	WirePID  int    `json:"wire_pid"`    // the process id that the connection got
	PID      int    `json:"backend_pid"` // the process id that the server returns
}

// name is the server with its version, for people.
func (s serverFacts) name() string {
	if s.Is != "" {
		return s.Is
	}
	return "PostgreSQL " + s.Version
}

func (x *examination) readServer(ctx context.Context) error {
	s := &x.server
	s.WirePID = int(x.conn.PgConn().PID())
	version, err := x.serverVersion(ctx)
	if err != nil {
		return err
	}
	if s.Is = lookalike.NameOf(version); s.Is != "" {
		s.Version = version
		x.add(finding{
			Check: "server", Status: warning, Says: fmt.Sprintf("this is %s, which only looks like PostgreSQL: %s", s.Is, version),
			Cure: "use rows instead of advisory locks: versions, row locks, package lease\n" +
				fmt.Sprintf("or, where exclusion below is well and its makers promise it for every failure, AllowServer(%q)", s.Is),
		})
	}
	return x.conn.QueryRow(ctx, `SELECT current_setting('server_version'), current_setting('server_version_num')::int,
		current_database(), current_user::text, pg_is_in_recovery(), pg_backend_pid()`).
		Scan(&s.Version, &s.Number, &s.Database, &s.Role, &s.Standby, &s.PID)
}

// serverVersion asks in the protocol that every server speaks. pgx refuses its own simple protocol if standard_conforming_strings is off, but this
// statement does not depend on that setting.
func (x *examination) serverVersion(ctx context.Context) (string, error) {
	results, err := x.conn.PgConn().Exec(ctx, "SELECT version()").ReadAll()
	if err != nil {
		return "", err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) != 1 {
		return "", errors.New("the server does not say its version")
	}
	return string(results[0].Rows[0][0]), nil
}

// checkEngine lets package sessionlock try: it refuses servers whose session locks do not exclude, and it has probed accepted servers on two
// connections.
func (x *examination) checkEngine(ctx context.Context) error {
	var opts []sessionlock.Option
	if x.server.Is != "" {
		opts = append(opts, sessionlock.AllowServer(x.server.Is)) // to see how it behaves
	}
	err := x.try(ctx, opts...)
	pooled := errors.Is(err, sessionlock.ErrPooler)
	if pooled {
		err = x.try(ctx, append(opts, sessionlock.AllowPooler())...)
	}
	x.handedOn = pooled && errors.Is(err, sessionlock.ErrPooler)
	x.reportPooler(pooled, x.handedOn)
	x.reportStandby(err)
	switch {
	case err == nil:
		x.well("exclusion", "a lock of one connection is refused to another")
	case errors.Is(err, sessionlock.ErrNoExclusion):
		x.add(finding{
			Check: "exclusion", Status: wrong, Says: "advisory locks exclude nobody here: " + terminal.TrimPrefix(err.Error()),
			Cure: "use rows (row locks, package lease) instead of advisory locks on this engine",
		})
	case errors.Is(err, sessionlock.ErrPooler), errors.Is(err, sessionlock.ErrStandby):
		x.add(finding{Check: "exclusion", Status: note, Says: "not tried: session locks cannot work here, see above"})
	default:
		if ctx.Err() != nil {
			return ctx.Err()
		}
		x.add(finding{
			Check: "exclusion", Status: warning, Says: "could not be tried on two connections: " + server.Problem(err),
			Cure: "package sessionlock needs two connections to start: see that the server and the role have room for them",
		})
	}
	return nil
}

// try opens and closes a manager of session locks.
func (x *examination) try(ctx context.Context, opts ...sessionlock.Option) error {
	m, err := sessionlock.OpenConfig(ctx, x.config, append(opts, sessionlock.Owner("doctor"))...)
	if err != nil {
		return err
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = m.Close(closing) // it holds nothing
	return nil
}

// worksHere is the end of the text about a pooler, unless prepared statements fail behind it.
const worksHere = "work here as it is"

func (x *examination) reportPooler(pooled, unsteady bool) {
	switch {
	case !pooled:
		x.well("pooler", "the connection is the server's own: process %d", x.server.PID)
	case unsteady:
		x.add(finding{
			Check: "pooler", Status: wrong,
			Says: fmt.Sprintf("a pooler stands in between and changes the server connection between statements or transactions: "+
				"the connection says process %d, the server %d; session locks stay with whoever gets that connection next", x.server.WirePID, x.server.PID),
			Cure: "session locks: connect to PostgreSQL itself, or to a pooler in session mode\n" +
				"transaction-level locks, version columns, row locks and package lease " + worksHere,
		})
	default:
		x.add(finding{
			Check: "pooler", Status: warning,
			Says: fmt.Sprintf("a pooler in session mode stands in between (the connection says process %d, the server %d): "+
				"its timeouts end sessions too, and it may be set to another mode any day", x.server.WirePID, x.server.PID),
			Cure: "connect to PostgreSQL itself, or pass sessionlock.AllowPooler() and keep pool_mode = session for this user and database",
		})
	}
}

func (x *examination) reportStandby(err error) {
	if x.server.Standby || errors.Is(err, sessionlock.ErrStandby) {
		x.add(finding{
			Check: "standby", Status: wrong, Says: "this server is a standby, which grants what its primary holds, and takes no writes",
			Cure: "connect to the primary: target_session_attrs=read-write where the address names several servers",
		})
		return
	}
	x.well("standby", "the server is a primary")
}

func (x *examination) checkVersion(context.Context) error {
	const oldest, newest = 14, 18
	switch major := x.server.Number / 10000; {
	case major < oldest:
		x.add(finding{
			Check: "version", Status: warning, Says: fmt.Sprintf("PostgreSQL %s is older than %d, the oldest that gormlock is tested on", x.server.Version, oldest),
			Cure: "upgrade the server",
		})
	case major > newest:
		x.add(finding{Check: "version", Status: note, Says: fmt.Sprintf("PostgreSQL %s is newer than %d, the newest that this gormlock is tested on", x.server.Version, newest)})
	default:
		x.well("version", "PostgreSQL %d is supported", major)
	}
	return nil
}

// checkRoom compares the size of the shared lock table with its content. Locks that a process keeps to itself (fastpath) and those of serializable
// reads are not in the table.
func (x *examination) checkRoom(ctx context.Context) error {
	var perTransaction, room, taken int
	err := x.conn.QueryRow(ctx, `SELECT current_setting('max_locks_per_transaction')::int,
		current_setting('max_locks_per_transaction')::int * (current_setting('max_connections')::int + current_setting('max_prepared_transactions')::int),
		(SELECT count(*) FROM pg_locks WHERE NOT fastpath AND mode <> 'SIReadLock')`).Scan(&perTransaction, &room, &taken)
	if err != nil {
		return err
	}
	says := fmt.Sprintf("%s of about %s places in the lock table are taken, %d %%", terminal.Thousands(int64(taken)), terminal.Thousands(int64(room)), 100*taken/max(room, 1))
	cure := fmt.Sprintf("find who holds them: gormlock ls\nor make more places:\nALTER SYSTEM SET max_locks_per_transaction = %d; -- and restart the server, standbys first", 4*perTransaction)
	switch {
	case taken*10 > room*8:
		x.add(finding{Check: "room", Status: wrong, Says: says + ": when it is full, statements of every program fail with 53200", Cure: cure})
	case taken*2 > room:
		x.add(finding{Check: "room", Status: warning, Says: says, Cure: cure})
	default:
		x.well("room", "%s", says)
	}
	return nil
}
