package sqltx

import (
	"context"
	"database/sql/driver"
	"strconv"

	"github.com/gormlock/gormlock/internal/sqlstate"
)

// session is what is known of the server's session under a connection, and what it has prepared. It lives as long as
// the session does, and only whoever has borrowed the connection looks at it.
//
//	unknown ─► direct ─► the statement is defined with its first use ─► executed
//	   └─────────┴──► plain texts: behind a pooler, or where prepared statements do not last
//
// A session is direct if the server's process is the one that the driver connected to. Behind a pooler it is another one,
// and the next transaction may meet a third, which has not prepared what this one did.
type session struct {
	plain    bool
	direct   bool
	defined  map[string]bool
	failures int
}

// sessionKey finds the session among the custom data of a connection.
const sessionKey = "gormlock.sqltx"

// mostFailures is how often a session may have lost what was prepared, as by DISCARD ALL, before nothing is prepared any
// more.
const mostFailures = 3

// session is that of the borrowed connection, nil where nobody can say what it is connected to.
func (c *loan) session() *session {
	wire := c.wireOnce()
	if wire == nil {
		return nil
	}
	data := wire.CustomData()
	if data == nil {
		return nil
	}
	s, ok := data[sessionKey].(*session)
	if !ok {
		s = &session{plain: wire.PID() == 0 || !cachesStatements(c.driver)}
		data[sessionKey] = s
	}
	return s
}

// open sends the texts that begin the transaction, as one message.
func (c *loan) open(ctx context.Context, begin string) (driver.Result, error) {
	name, definition, execute := c.opening.Texts.Prepared()
	var s *session
	if name != "" {
		s = c.session()
	}
	switch {
	case s == nil || s.plain || !s.direct && c.opening.Texts.Answers():
		return c.exec(ctx, c.openingText(begin), nil)
	case !s.direct:
		return c.openAndAsk(ctx, begin, s)
	}
	define := ""
	if !s.defined[name] {
		define = definition + "; "
	}
	result, err := c.exec(ctx, begin+"; "+define+execute, nil)
	if sqlstate.Is(err, sqlstate.InvalidSQLStatementName, sqlstate.DuplicatePreparedStatement) {
		// Nothing was executed of it. What was known of the session does not hold.
		*s = session{failures: s.failures + 1}
		s.plain = s.failures >= mostFailures || define != ""
		if rollback := (textTx{c}).Rollback(); rollback != nil {
			return nil, driver.ErrBadConn
		}
		return c.exec(ctx, c.openingText(begin), nil)
	}
	if define != "" && (err == nil || sqlstate.Of(err) != "") { // what failed came after the definition, which lasts
		if s.defined == nil {
			s.defined = map[string]bool{}
		}
		s.defined[name] = true
	}
	return result, err
}

// openAndAsk has the server say besides whether the session is direct.
func (c *loan) openAndAsk(ctx context.Context, begin string, s *session) (driver.Result, error) {
	pid := strconv.FormatUint(uint64(c.wire.PID()), 10)
	result, err := c.exec(ctx, c.openingText(begin)+"; SELECT FROM generate_series(1, (pg_backend_pid() = "+pid+")::int)", nil)
	if err == nil {
		n, unknown := result.RowsAffected()
		s.direct = n == 1 && unknown == nil
		s.plain = !s.direct
	}
	return result, err
}

func (c *loan) openingText(begin string) string {
	before, after := c.opening.Texts.Around()
	return before + begin + "; " + after
}
