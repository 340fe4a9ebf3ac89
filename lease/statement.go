package lease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/gormlock/gormlock/fence"
)

// statements are what a kind of table is written to by, one for each thing that is done.
// All parameters are cast and lists are text, so that every driver and the simple
// protocol can send them; all times are those of the database, as of the start of the
// statement.
type statements struct {
	// acquire takes one lease and issues its token; parameters are those of acquireArgs.
	// One row: the token (0: refused); the owner, the microseconds that the lease still
	// runs, and whether its release will be notified. No row: a race was lost, ask again.
	acquire string
	// acquireListened puts down that the release is to be notified as well. There is none
	// for ShedLock's table.
	acquireListened string
	// acquireMany takes those of many leases that nothing stands in the way of, by askArgs.
	// Its rows are which, and those of acquire. There is none for ShedLock's table.
	acquireMany string
	// renew renews many, by listArgs with their lengths. Its rows are those that were not
	// renewed: which, and whether that is because somebody had the row locked.
	renew string
	// release gives one back, by releaseArgs, and releaseMany many, by listArgs with the
	// AtLeast of each. Their rows are those that were there. Whoever asked for it is notified.
	release, releaseMany string
	// releaseFree is releaseMany without those whose rows somebody has locked. There is none
	// for ShedLock's table.
	releaseFree string
	// holder reads one: owner, data, microseconds since it was acquired and still to run.
	holder string
}

// durable makes the transaction wait for its commit: a renewal undone by a crash would end
// a lease whose holder believes in it.
const durable = `durable AS MATERIALIZED (` + fence.Durable + `)`

// claim is one acquisition as the table knows it.
type claim struct {
	token  fence.Token // its Number is 0 until it is granted
	row    string      // the name of the row in ShedLock's table
	holder string      // names the acquisition, as nothing else does
}

func (m *Manager) acquireArgs(r *request, c claim) []any {
	args := []any{c.token.Space, c.token.ID, c.token.Name, c.holder, r.ttl.Microseconds()}
	if m.config.shedlock {
		return append(args, c.row)
	}
	return append(args, m.config.owner, r.data)
}

func (m *Manager) releaseArgs(it listed) []any {
	if m.config.shedlock {
		return []any{it.row, it.holder, it.span.Microseconds()}
	}
	return []any{it.token.Space, it.token.ID, it.holder, it.span.Microseconds()}
}

// listed is an element of a list that a statement works off.
type listed struct {
	claim
	span time.Duration
}

// listArgs are lists as text: the keys, the holders, a span of time for each, and the
// spaces of the keys.
func (m *Manager) listArgs(items []listed) []any {
	lists := [4]strings.Builder{}
	keys, holders, spans, spaces := &lists[0], &lists[1], &lists[2], &lists[3]
	for i, it := range items {
		for n := range lists {
			lists[n].WriteByte("{,"[min(i, 1)])
		}
		if m.config.shedlock {
			writeQuoted(keys, it.row)
		} else {
			keys.WriteString(strconv.FormatInt(it.token.ID, 10))
		}
		writeQuoted(holders, it.holder)
		spans.WriteString(strconv.FormatInt(it.span.Microseconds(), 10))
		spaces.WriteString(strconv.Itoa(int(it.token.Space)))
	}
	var args []any
	for n := range lists {
		if len(items) == 0 {
			lists[n].WriteByte('{')
		}
		args = append(args, lists[n].String()+"}")
	}
	if m.config.shedlock {
		return args[:3] // its key is the name alone
	}
	return args
}

var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// writeQuoted writes text as an element of an array literal.
func writeQuoted(to *strings.Builder, text string) {
	to.WriteByte('"')
	_, _ = escaped.WriteString(to, text)
	to.WriteByte('"')
}

// query runs a statement and scans its rows. sent is from before the server could have
// seen it, and zero when it was not sent; the wait for a connection of the pool is not in it.
func (m *Manager) query(ctx context.Context, text string, args []any, scan func(rows *sql.Rows) error) (sent instant, err error) {
	for range 3 {
		sent, err = m.queryOnce(ctx, text, args, scan)
		if !errors.Is(err, driver.ErrBadConn) { // which says that the server has not seen it
			return sent, err
		}
	}
	return sent, err
}

func (m *Manager) queryOnce(ctx context.Context, text string, args []any, scan func(rows *sql.Rows) error) (sent instant, err error) {
	conn, err := m.db.Conn(ctx)
	if err != nil {
		return instant{}, err
	}
	defer func() { _ = conn.Close() }()
	sent = m.config.clock()
	rows, err := conn.QueryContext(ctx, text, args...)
	if err != nil {
		return sent, err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return sent, err
		}
	}
	return sent, rows.Err()
}
