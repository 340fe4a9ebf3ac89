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

// Session is session-level locks that are acquired and released together.
type Session struct {
	request     *Request
	allowPooler bool
}

// NewSession checks a key, and options: those that are not of transactions alone.
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

// Queryer asks for rows: a *sql.Conn.
type Queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Try takes the locks if nobody has one of them; otherwise it keeps none. backend is the server's process that the
// driver was told of when it connected, 0 if nobody knows: where another one answers, a pooler stands in between.
func (s *Session) Try(ctx context.Context, q Queryer, backend uint32) error {
	pooled := "false"
	if backend != 0 && !s.allowPooler {
		pooled = fmt.Sprintf("pg_backend_pid() <> %d", backend)
	}
	for i, l := range s.request.locks {
		// The parts of CASE are evaluated in order, and no further than needed.
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
			return fmt.Errorf("gormlock: lock %s: not acquired, and the lock that was taken with it is not released: %s", l.key, undone) //nolint:errorlint // its state would say that all is known
		}
		return err
	}
	return nil
}

// Ended is the error of a caller whose ctx has ended, with its cause. last is what came of the last try, nil if there was none.
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

// Unlock releases the locks, all that it can.
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

// mine is a condition on pg_locks: this session has the lock.
func mine(l lock) string {
	id, _ := lockid.Of(l.key)
	classid, objid := id.Halves()
	return fmt.Sprintf("locktype = 'advisory' AND pid = pg_backend_pid() AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND objsubid = %d AND classid = %d AND objid = %d",
		id.Space, classid, objid)
}

// one asks for one text.
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

// Jitter is d or up to a quarter more, so that processes do not march in step.
func Jitter(d time.Duration) time.Duration { return d + rand.N(d/4+1) }
