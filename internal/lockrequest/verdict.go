package lockrequest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gormlock/gormlock/internal/cause"
	"github.com/gormlock/gormlock/internal/lookalike"
	"github.com/gormlock/gormlock/internal/otherdb"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

// The states of a call that failed. Package advisory says what each means.
var (
	ErrNotAcquired   = errors.New("gormlock: held by another session")
	ErrLockTimeout   = errors.New("gormlock: lock wait timed out")
	ErrSnapshotTaken = errors.New("gormlock: the snapshot is older than the lock")
	ErrStandby       = errors.New("gormlock: the server is a standby, its locks exclude nobody on the primary")
	ErrOption        = errors.New("gormlock: invalid lock option")
	ErrServer        = lookalike.ErrServer
	ErrNotPostgres   = otherdb.ErrNotPostgres
)

// lockError is a failed call: errors.Is finds the state, errors.As the driver's error.
type lockError struct {
	state, cause error
	what, detail string
	nameless     bool // for ErrServer: it is not known yet which server it is
}

func (e *lockError) Error() string {
	text := "gormlock: lock " + e.what + ": " + strings.TrimPrefix(e.state.Error(), "gormlock: ")
	if e.detail != "" {
		text += ", " + e.detail
	}
	return text
}

func (e *lockError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.state}
	}
	return []error{e.state, e.cause}
}

// gormlock's statements fail on purpose by a cast of one of these texts to integer. The server
// quotes the text in its message, in whatever language the message is.
const (
	refusedIsolation = "gormlock refused: "
	refusedKey       = "gormlock not acquired: key "
)

// verdict returns the error that the caller gets if the server or the driver answers the request with err.
func (r *Request) verdict(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return cause.Add(ctx, &lockError{state: ended, cause: err, what: r.String(), detail: "the transaction is lost"})
	}
	if other := otherdb.Said(err); other != nil {
		return other.Refusal("lock "+r.String(), err)
	}
	if version := lookalike.Read(err.Error()); version != "" {
		return r.server(version, err)
	}
	switch sqlstate.Of(err) {
	case sqlstate.LockNotAvailable:
		detail := "after the session's lock_timeout"
		if r.timeout > 0 {
			detail = fmt.Sprintf("after %s", r.timeout)
		}
		return &lockError{state: ErrLockTimeout, cause: err, what: r.String(), detail: detail}
	case sqlstate.InvalidTextRepresentation:
		if refusal := r.refusal(err.Error()); refusal != nil {
			return refusal
		}
	case sqlstate.NoActiveSQLTransaction:
		return &lockError{state: errNoTransaction, cause: err, what: r.String()}
	case sqlstate.OutOfMemory:
		return &lockError{state: err, what: r.String(), detail: fmt.Sprintf("the lock table is full: take fewer than %d locks at once or raise max_locks_per_transaction", len(r.locks))}
	}
	if foreign(err) {
		return r.server("", err)
	}
	return &lockError{state: err, what: r.String()}
}

// foreign reports whether the server does not know a name in the statement, as err says. PostgreSQL knows all of them.
func foreign(err error) bool {
	return sqlstate.Is(err, sqlstate.FeatureNotSupported) ||
		sqlstate.InClass(err, sqlstate.ClassAccessOrName) && !sqlstate.Is(err, sqlstate.InsufficientPrivilege, sqlstate.DuplicatePreparedStatement)
}

// server is the error for a server that is not PostgreSQL.
func (r *Request) server(version string, err error) error {
	return &lockError{state: ErrServer, cause: err, what: r.String(), detail: lookalike.Refusal(version), nameless: version == ""}
}

// Named is err with the name of the server, if err is about a server and does not name it yet: the server is asked for its
// version, outside of the transaction.
func (r *Request) Named(ctx context.Context, on Tx, err error) error {
	if refused := (*lockError)(nil); !errors.As(err, &refused) || !refused.nameless {
		return err
	}
	if _, raised := on.ExecContext(ctx, "SELECT "+lookalike.Raise); raised != nil {
		if version := lookalike.Read(raised.Error()); version != "" {
			return r.server(version, err)
		}
	}
	return err
}

var errNoTransaction = errors.New("gormlock: no transaction is open, begin one first")

// refusal looks in the server's message for one of the texts with which gormlock's statements fail.
func (r *Request) refusal(message string) error {
	if _, isolation, ok := strings.Cut(message, refusedIsolation); ok {
		if strings.HasPrefix(isolation, "read ") {
			return &lockError{state: ErrStandby, what: r.String()}
		}
		isolation, _, _ = strings.Cut(isolation, `"`)
		return &lockError{state: ErrSnapshotTaken, what: r.String(), detail: "isolation level " + isolation}
	}
	if _, place, ok := strings.Cut(message, refusedKey); ok {
		var n int
		if _, err := fmt.Sscanf(place, "%d", &n); err == nil && n >= 1 && n <= len(r.locks) {
			return &lockError{state: ErrNotAcquired, what: r.locks[n-1].key.String()}
		}
		return &lockError{state: ErrNotAcquired, what: r.String()}
	}
	return nil
}

// String names the keys for people. If there are many, it names the first few.
func (r *Request) String() string {
	const shown = 3
	var names []string
	for i, l := range r.locks {
		if i == shown && len(r.locks) > shown+1 {
			names = append(names, fmt.Sprintf("and %d more", len(r.locks)-shown))
			break
		}
		names = append(names, l.key.String())
	}
	return strings.Join(names, ", ")
}
