package sessionlock

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/tokens"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// newIssuerRig is a rig with a session for tokens.
func newIssuerRig(t *testing.T) (*rig, *session) {
	t.Helper()
	r := newRig(t)
	return r, r.addIssuer()
}

// addIssuer is a session for tokens.
func (r *rig) addIssuer() *session {
	s := r.add(wire.Issuer)
	s.tokens, r.issuer.session = &r.issuer, s
	return s
}

// wantToken asks for a token of the n-th key.
func (r *rig) wantToken(n int, opts ...func(*waiter)) *tokenRequest {
	r.t.Helper()
	w := r.waiter(n, opts)
	t := &tokenRequest{w: w, id: w.id}
	w.token = t
	r.issuer.add(t)
	return t
}

// issues answers a query with a number for each key, except those left out.
func issues(q *query, leftOut ...*tokenRequest) {
	number := int64(100)
	for _, t := range q.tokens {
		number++
		t.number = number
	}
	for _, t := range leftOut {
		t.number = 0
	}
}

// issues makes s send a query, and answers it with a number for each key, except those left out.
func (r *rig) issues(s *session, st wire.Statement, leftOut ...*tokenRequest) {
	r.t.Helper()
	issues(r.asks(s, st), leftOut...)
	r.answers(s)
}

// issued fails the test unless a request got a token.
func (r *rig) issued(tr *tokenRequest) {
	r.t.Helper()
	r.is(tr.w, "a token", func(err error) bool { return err == nil && tr.number != 0 })
}

// 21000: a statement that meets a row twice fails. So the second request for a key goes into the next statement.
func TestIssuer_noKeyTwiceInAStatement(t *testing.T) {
	t.Parallel()
	r, s := newIssuerRig(t)
	a, b, c := r.wantToken(1), r.wantToken(1), r.wantToken(2)
	q := r.asks(s, wire.Issue)
	if len(q.tokens) != 2 || q.tokens[a.id] != a || q.tokens[c.id] != c {
		t.Fatalf("%d keys in the statement, want the first of each", len(q.tokens))
	}
	issues(q)
	r.answers(s)
	r.issues(s, wire.Issue)
	for _, tr := range []*tokenRequest{a, b, c} {
		r.issued(tr)
	}
}

// A locked row only holds up its own token.
func TestIssuer_lockedRow(t *testing.T) {
	t.Parallel()
	r, s := newIssuerRig(t)
	locked, others := r.wantToken(1), r.wantToken(2)
	r.fails(s, wire.Issue, sqlstate.LockNotAvailable)
	r.issues(s, wire.IssueUnlocked, locked)
	if !others.w.finished || locked.w.finished {
		t.Fatalf("finished: the locked %v, the other %v", locked.w.finished, others.w.finished)
	}
	r.silent(s)
	if r.issuer.retryAt.IsZero() {
		t.Fatal("the locked one is not asked for again")
	}
	r.issuer.retry()
	r.issues(s, wire.IssueUnlocked)
	r.issued(locked)
}

// An error of a statement goes to the request that caused it.
func TestIssuer_errorOfOneKey(t *testing.T) {
	t.Parallel()
	r, s := newIssuerRig(t)
	good, bad := r.wantToken(1), r.wantToken(2)
	r.fails(s, wire.Issue, "22021")
	for range 2 {
		q := r.asks(s, wire.Issue)
		if len(q.tokens) != 1 {
			t.Fatalf("%d keys in the statement, want one by one", len(q.tokens))
		}
		if q.tokens[bad.id] != nil {
			q.err = &pgconn.PgError{Code: "22021"}
		} else {
			issues(q)
		}
		r.answers(s)
	}
	if good.w.err != nil || !sqlstate.Is(bad.w.err, "22021") {
		t.Errorf("the good one %v, the bad one %v", good.w.err, bad.w.err)
	}
}

func TestIssuer_missingTableNamesTheCure(t *testing.T) {
	t.Parallel()
	r, s := newIssuerRig(t)
	a, b := r.wantToken(1), r.wantToken(2)
	r.fails(s, wire.Issue, sqlstate.UndefinedTable)
	for _, tr := range []*tokenRequest{a, b} {
		if !tr.w.finished || !sqlstate.Is(tr.w.err, sqlstate.UndefinedTable) || !strings.Contains(tr.w.err.Error(), "fence.Migrate") {
			t.Errorf("got %v", tr.w.err)
		}
	}
}

// L11: if a commit was not waited for to the end, none of its tokens is returned.
func TestIssuer_notDurable(t *testing.T) {
	t.Parallel()
	r, s := newIssuerRig(t)
	a := r.wantToken(1)
	q := r.asks(s, wire.Issue)
	issues(q)
	q.warned = true
	r.answers(s)
	if !errors.Is(a.w.err, tokens.ErrNotDurable) {
		t.Errorf("got %v", a.w.err)
	}
}

// Requests that were on their way may have been executed, and nobody knows which. The others are sent again.
func TestIssuer_sessionEnds(t *testing.T) {
	t.Parallel()
	r, s := newIssuerRig(t)
	sent := r.wantToken(1)
	r.asks(s, wire.Issue)
	waiting := r.wantToken(2)
	r.issuer.dialing = true // by the test
	r.conns.lose(s, errSilent)
	if !errors.Is(sent.w.err, errSilent) || waiting.w.finished {
		t.Errorf("what was on its way %v, what was not %v", sent.w.err, waiting.w.err)
	}
	s = r.addIssuer()
	r.issues(s, wire.Issue)
	r.issued(waiting)
}

func TestIssuer_callersLeave(t *testing.T) {
	t.Parallel()
	r, s := newIssuerRig(t)
	r.ledger.abandon(r.wantToken(1).w)
	r.silent(s)
	sent := r.wantToken(1)
	q := r.asks(s, wire.Issue)
	r.ledger.abandon(sent.w)
	issues(q)
	r.answers(s)
	if r.wakeups.count != 0 {
		t.Error("somebody is woken who has left")
	}
}

// If there is no session, callers that do not wait get the reason. If waiting cannot help, all get it.
func TestIssuer_noSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.issuer.dialing = true // by the test
	patient, hasty := r.wantToken(1), r.wantToken(2, try)
	r.issuer.refuse(errSilent)
	if !errors.Is(hasty.w.err, errSilent) || patient.w.finished {
		t.Errorf("who does not wait %v, who waits %v", hasty.w.err, patient.w.err)
	}
	r.issuer.refuse(fmt.Errorf("prepare: %w", &pgconn.PgError{Code: sqlstate.InsufficientPrivilege}))
	if !sqlstate.Is(patient.w.err, sqlstate.InsufficientPrivilege) || len(r.issuer.waiting) != 0 {
		t.Errorf("without the right: %v", patient.w.err)
	}
}

func TestIssuer_failAll(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.issuer.dialing = true // by the test
	a, b := r.wantToken(1), r.wantToken(2)
	r.issuer.waiting = nil
	r.issuer.askLater(a)
	r.issuer.waiting = []*tokenRequest{b}
	r.issuer.failAll(ErrClosed)
	if !errors.Is(a.w.err, ErrClosed) || !errors.Is(b.w.err, ErrClosed) {
		t.Errorf("to be sent again %v, waiting %v", a.w.err, b.w.err)
	}
	if time.Until(r.issuer.retryAt) > reissueAfter {
		t.Errorf("left alone for %s", time.Until(r.issuer.retryAt))
	}
}
