package lockrequest

import (
	"context"
	"fmt"
	"strings"

	"github.com/gormlock/gormlock/internal/cause"
	"github.com/gormlock/gormlock/internal/sqltext"
)

// Held reports whether the transaction tx, or its session, has all of the locks.
func (r *Request) Held(ctx context.Context, tx Tx) (bool, error) {
	text := &sqltext.Own{Context: ctx, Query: r.heldSQL(), Answers: true}
	result, err := tx.ExecContext(text, text.Query)
	if err != nil {
		return false, &lockError{state: cause.Add(ctx, err), what: r.String(), detail: "not known whether it is held"}
	}
	rows, err := result.RowsAffected()
	return rows == int64(len(r.locks)), err
}

// heldSQL returns one row for each of the locks that the session holds.
func (r *Request) heldSQL() string {
	wanted := make([]string, len(r.locks))
	for i, l := range r.locks {
		id := number(l)
		class, object := id.Halves()
		wanted[i] = fmt.Sprintf("(%d, %d::int8, %d::int8, %t)", id.Space, class, object, l.shared)
	}
	return "SELECT FROM (VALUES " + strings.Join(wanted, ", ") + ") AS wanted(space, class, object, shared) WHERE EXISTS (SELECT FROM pg_catalog.pg_locks AS l " +
		"WHERE l.pid = pg_backend_pid() AND l.locktype = 'advisory' AND l.granted AND l.objsubid = wanted.space AND l.classid::int8 = wanted.class " +
		"AND l.objid::int8 = wanted.object AND (wanted.shared OR l.mode = 'ExclusiveLock'))"
}
