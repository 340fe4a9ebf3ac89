package lockrequest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gormlock/gormlock/internal/cause"
	"github.com/gormlock/gormlock/internal/lockid"
	"github.com/gormlock/gormlock/internal/lookalike"
	"github.com/gormlock/gormlock/internal/otherdb"
	"github.com/gormlock/gormlock/lockkey"
)

// The states of a session lock that was not acquired or released. Package advisory says what each means.
var (
	ErrPooler  = errors.New("gormlock: behind a connection pooler")
	ErrHeld    = errors.New("gormlock: already held by this session")
	ErrNotHeld = errors.New("gormlock: not held by this session")
)

// Session holds session-level locks that are acquired and released together.
type Session struct {
	request     *Request
	allowPooler bool
}

// NewSession checks a key and options. Options that only make sense in transactions are errors.
func NewSession(key lockkey.Key, opts ...Option) (*Session, error) {
	r, err := New([]lockkey.Key{key})
	if err != nil {
		return nil, err
	}
	terms, err := termsOf(opts)
	if err != nil {
		return nil, err
	}
	if terms.Try || terms.Shared || terms.AllowSnapshot || terms.Timeout > 0 {
		return nil, fmt.Errorf("%w: SessionLocker takes AllowServer and AllowPooler; its lock is exclusive, and waits as long as ctx", ErrOption)
	}
	r.servers = terms.Servers
	return &Session{r, terms.AllowPooler}, nil
}

// Queryer runs queries: a *sql.Conn.
type Queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Try takes the locks if nobody holds any of them; otherwise it keeps none. backend is the server's process from when the
// driver connected, 0 if it is not known. If another process answers, there is a pooler in between.
func (s *Session) Try(ctx context.Context, q Queryer, backend uint32) error {
	pooled := "false"
	if backend != 0 && !s.allowPooler {
		pooled = fmt.Sprintf("pg_backend_pid() <> %d", backend)
	}
	for i, l := range s.request.locks {
		// CASE evaluates its conditions in order, and stops at the first that is true.
		answer, err := one(ctx, q, "SELECT CASE WHEN pg_is_in_recovery() THEN 'standby' WHEN "+lookalike.Condition(s.request.servers)+" THEN '"+lookalike.Says+"' || version() WHEN "+pooled+" THEN 'pooler' WHEN EXISTS (SELECT 1 FROM pg_locks WHERE "+mine(l)+
			") THEN 'held' WHEN pg_try_advisory_lock("+literal(l)+") THEN 'granted' ELSE 'refused' END")
		if other := otherdb.Said(err); other != nil {
			return other.Refusal("lock "+l.key.String(), err)
		}
		if foreign(err) {
			version, _ := one(ctx, q, "SELECT version()")
			return &lockError{state: ErrServer, cause: err, what: l.key.String(), detail: lookalike.Itself(version)}
		}
		if err != nil {
			return fmt.Errorf("gormlock: lock %s: %w", l.key, err)
		}
		if answer == "granted" {
			continue
		}
		if version := lookalike.Read(answer); version != "" {
			return &lockError{state: ErrServer, what: l.key.String(), detail: lookalike.Itself(version)}
		}
		state := map[string]error{"standby": ErrStandby, "pooler": ErrPooler, "held": ErrHeld, "refused": ErrNotAcquired}[answer]
		refused := &lockError{state: state, what: l.key.String()}
		if answer == "pooler" {
			refused.detail = "connect to PostgreSQL itself, or to a pooler in session mode with AllowPooler"
		}
		err = refused
		if undone := (&Session{request: &Request{locks: s.request.locks[:i]}}).Unlock(ctx, q); undone != nil {
			return fmt.Errorf("gormlock: lock %s: not acquired, and the lock that was taken with it is not released: %s", l.key, undone) //nolint:errorlint // a state in the error would mean that no lock is held
		}
		return err
	}
	return nil
}

// Ended is the error if the caller's ctx has ended, with the cause. last is the error of the last try, nil if there was none.
func (s *Session) Ended(ctx context.Context, last error) error {
	ended := &lockError{state: ctx.Err(), cause: last, what: s.request.String(), detail: "no answer from the server"}
	switch {
	case last == nil:
		ended.detail = "not asked for"
	case errors.Is(last, ErrNotAcquired):
		ended.detail = "another session holds it"
	}
	return cause.Add(ctx, ended)
}

// Unlock releases as many of the locks as it can.
func (s *Session) Unlock(ctx context.Context, q Queryer) error {
	var failed []error
	for _, l := range s.request.locks {
		answer, err := one(ctx, q, "SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM pg_locks WHERE "+mine(l)+
			") THEN 'not held' WHEN pg_advisory_unlock("+literal(l)+") THEN 'given back' ELSE 'not held' END")
		switch other := otherdb.Said(err); {
		case other != nil:
			return other.Refusal("unlock "+l.key.String(), err)
		case err != nil:
			failed = append(failed, fmt.Errorf("gormlock: unlock %s: %w", l.key, err))
		case answer == "not held":
			failed = append(failed, &lockError{state: ErrNotHeld, what: l.key.String()})
		}
	}
	return errors.Join(failed...)
}

// mine is a condition on pg_locks that this session holds the lock.
func mine(l lock) string {
	id, _ := lockid.Of(l.key)
	classid, objid := id.Halves()
	return fmt.Sprintf("locktype = 'advisory' AND pid = pg_backend_pid() AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND objsubid = %d AND classid = %d AND objid = %d",
		id.Space, classid, objid)
}

// one runs a query that returns one text.
func one(ctx context.Context, q Queryer, query string) (answer string, err error) {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if !rows.Next() {
		return "", errors.Join(sql.ErrNoRows, rows.Err())
	}
	if err := rows.Scan(&answer); err != nil {
		return "", err
	}
	return answer, rows.Err()
}

// Jitter is d plus up to a quarter, so that processes do not act at the same moments.
func Jitter(d time.Duration) time.Duration { return d + rand.N(d/4+1) }
