package sqltx

import (
	"context"
	"database/sql/driver"
	"strconv"

	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/sqltext"
)

// session is what is known of the server's session under a connection, and which statements it has prepared. It lives as long as
// the session, and only the borrower of the connection uses it.
//
//	unknown ─► direct ─► the statement is defined with its first use ─► executed
//	   └─────────┴──► plain texts: behind a pooler, or where prepared statements do not last
//
// A session is direct if the server's process is the one that the driver connected to. Behind a pooler it is another process,
// and the next transaction may run in a third one, where the statements are not prepared.
type session struct {
	plain    bool
	direct   bool
	defined  map[string]bool
	failures int
}

// sessionKey finds the session among the custom data of a connection.
const sessionKey = "gormlock.sqltx"

// mostFailures is how often a session may lose its prepared statements, for example by DISCARD ALL, before gormlock prepares
// none in it any more.
const mostFailures = 3

// session is the session of the borrowed connection, nil if the driver does not tell what it is connected to.
func (b *borrowed) session() *session {
	wire := b.wireOnce()
	if wire == nil {
		return nil
	}
	data := wire.CustomData()
	if data == nil {
		return nil
	}
	s, ok := data[sessionKey].(*session)
	if !ok {
		s = &session{plain: wire.PID() == 0 || !cachesStatements(b.driver)}
		data[sessionKey] = s
	}
	return s
}

// open sends the texts that begin the transaction, as one message.
func (c *loan) open(ctx context.Context, begin string) (driver.Result, error) {
	name, definition, execute := c.opening.Texts.Prepared()
	s := c.sessionFor(name)
	switch {
	case s == nil || !s.direct && c.opening.Texts.Answers():
		return c.exec(ctx, c.openingText(begin), nil)
	case !s.direct:
		return c.execAndAsk(ctx, s, c.openingText(begin))
	}
	result, lost, err := c.execPrepared(ctx, s, sqltext.Prepared{Name: name, Definition: definition, Execute: execute, Before: begin + "; "})
	if lost {
		if rollback := (textTx{c}).Rollback(); rollback != nil {
			return nil, driver.ErrBadConn
		}
		return c.exec(ctx, c.openingText(begin), nil)
	}
	return result, err
}

// execOwn sends a text of gormlock in an open transaction.
func (c *loan) execOwn(ctx context.Context, own *sqltext.Own) (driver.Result, error) {
	s := c.sessionFor(own.Prepared.Name)
	switch {
	case s == nil || !s.direct && own.Answers:
		return c.exec(ctx, own.Query, nil)
	case !s.direct:
		return c.execAndAsk(ctx, s, own.Query)
	}
	result, lost, err := c.execPrepared(ctx, s, own.Prepared)
	if lost {
		if _, failed := c.exec(ctx, own.Prepared.Undo, nil); failed != nil {
			return nil, err
		}
		return c.exec(ctx, own.Query, nil)
	}
	return result, err
}

// sessionFor is the session that can execute the prepared statement of this name, nil if a plain text must be sent.
func (b *borrowed) sessionFor(name string) *session {
	if name == "" {
		return nil
	}
	if s := b.session(); s != nil && !s.plain {
		return s
	}
	return nil
}

// execPrepared executes a prepared statement. If the session has not defined it yet, it defines it first. lost says that the session does not
// have the statement, or has another one of that name. Then only p.Before was executed.
func (c *loan) execPrepared(ctx context.Context, s *session, p sqltext.Prepared) (result driver.Result, lost bool, err error) {
	define := ""
	if !s.defined[p.Name] {
		define = p.Definition + "; "
	}
	result, err = c.exec(ctx, p.Before+define+p.Execute+p.After, nil)
	if sqlstate.Is(err, sqlstate.InvalidSQLStatementName, sqlstate.DuplicatePreparedStatement) {
		*s = session{failures: s.failures + 1} // what was known of the session is wrong
		s.plain = s.failures >= mostFailures || define != ""
		return nil, true, err
	}
	if define != "" && (err == nil || sqlstate.Of(err) != "" && !sqlstate.Is(err, sqlstate.InFailedSQLTransaction, sqlstate.NoActiveSQLTransaction)) { // the definition came before the failure, and it lasts
		if s.defined == nil {
			s.defined = map[string]bool{}
		}
		s.defined[p.Name] = true
	}
	return result, false, err
}

// execAndAsk sends the text, and asks the server in the same message whether the session is direct.
func (c *loan) execAndAsk(ctx context.Context, s *session, text string) (driver.Result, error) {
	pid := strconv.FormatUint(uint64(c.wire.PID()), 10)
	result, err := c.exec(ctx, text+"; SELECT FROM generate_series(1, (pg_backend_pid() = "+pid+")::int)", nil)
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
