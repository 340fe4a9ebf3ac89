package sessionlock

import (
	"slices"
	"time"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/tokens"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// reissueAfter is the pause before a token row is tried again that somebody has locked.
const reissueAfter = 10 * time.Millisecond

// tokenRequest is a request for a token.
type tokenRequest struct {
	w      *waiter
	id     holder.Place
	token  fence.Token
	number int64
	missed bool // its row was locked by somebody
	alone  bool // it was in a statement that failed, perhaps because of another key
}

// issuer issues fencing tokens, many in one statement. It has its own session, because a commit that waits for a standby
// must not delay tries and unlocks.
type issuer struct {
	session   *session // nil while there is none
	dialing   bool
	dialError error // why there is none
	waiting   []*tokenRequest
	later     []*tokenRequest // to be sent again at retryAt
	retryAt   time.Time

	wakeups *wakeups
	conns   *connections
	upkeep  *upkeep
}

// add issues a token. Its waiter gets one answer, now or later.
func (i *issuer) add(r *tokenRequest) {
	i.waiting = append(i.waiting, r)
	i.send()
}

// send makes the session send. If there is no session, it opens one.
func (i *issuer) send() {
	switch {
	case i.session != nil:
		i.session.outbox.add(i.session)
	case !i.dialing:
		i.dialing = true
		i.conns.life.run(i.dial)
	}
}

// dial opens a session for tokens. It tries until it succeeds or nobody waits for a token.
func (i *issuer) dial() {
	var b backoff
	for !i.dialOnce() {
		i.conns.life.pause(b.next())
	}
}

// dialOnce tries once, and reports whether no further try is needed.
func (i *issuer) dialOnce() bool {
	s, err := i.conns.dial(wire.Issuer)
	i.conns.mu.Lock()
	defer i.conns.mu.Unlock()
	i.dialError = err
	switch {
	case err != nil:
		i.refuse(err)
	case i.conns.add(s):
		i.session = s
		s.tokens = i
		s.freeAt = time.Now()
		s.outbox.add(s)
	}
	if err != nil && len(i.waiting)+len(i.later) > 0 {
		return false
	}
	i.dialing = false
	return true
}

// refuse refuses the requests that do not wait; if waiting does not help, it refuses all.
func (i *issuer) refuse(cause error) {
	if sqlstate.InClass(cause, sqlstate.ClassAccessOrName) { // no table, or no privilege
		i.failAll(cause)
		return
	}
	stillWaiting := func(all []*tokenRequest) []*tokenRequest {
		return slices.DeleteFunc(all, func(r *tokenRequest) bool {
			if r.w.try && !r.w.finished {
				i.fail(r, cause)
			}
			return r.w.finished
		})
	}
	i.waiting, i.later = stillWaiting(i.waiting), stillWaiting(i.later)
}

// next removes the requests of the next statement: no key twice, and requests of a statement that failed one at a time.
func (i *issuer) next() (query, bool) {
	q := query{statement: wire.Issue, tokens: map[holder.Place]*tokenRequest{}}
	limit := maxTokens
	for _, r := range i.waiting {
		if r.missed && !r.w.finished {
			q.statement = wire.IssueUnlocked
		}
		if r.alone && !r.w.finished {
			limit = 1
		}
	}
	var left []*tokenRequest
	for _, r := range i.waiting {
		switch {
		case r.w.finished: // its caller has left
		case q.tokens[r.id] != nil || len(q.tokens) == limit || q.statement == wire.IssueUnlocked && !r.missed:
			left = append(left, r)
		default:
			q.tokens[r.id] = r
		}
	}
	i.waiting = left
	return q, len(q.tokens) > 0
}

// answered gives the tokens of one statement to their callers.
func (i *issuer) answered(s *session, q *query) {
	s.freeAt = time.Now()
	switch {
	case q.err == nil:
	case q.err.Code == sqlstate.LockNotAvailable || q.err.Code == sqlstate.DeadlockDetected:
		i.askUnlocked(q)
		return
	case len(q.tokens) > 1 && q.err.Code != sqlstate.UndefinedTable:
		i.askAlone(q)
		return
	}
	var err error
	switch {
	case q.err != nil:
		err = q.err
	case q.warned:
		err = tokens.ErrNotDurable
	}
	for _, r := range q.tokens {
		switch {
		case r.w.finished:
		case err != nil:
			i.fail(r, err)
		case r.number == 0: // somebody has its row locked
			i.askLater(r)
		default:
			i.wakeups.finish(r.w, nil)
		}
	}
}

// askUnlocked asks again with a statement that skips locked rows. Requests that it skips are sent again later.
func (i *issuer) askUnlocked(q *query) {
	for _, r := range q.tokens {
		if q.statement == wire.IssueUnlocked {
			i.askLater(r)
			continue
		}
		r.missed = true
		i.waiting = append(i.waiting, r)
	}
}

// askAlone asks again one by one, so an error is returned to the right caller: for example a name that the encoding of
// the database does not have, or a privilege that the role lacks.
func (i *issuer) askAlone(q *query) {
	for _, r := range q.tokens {
		r.alone = true
		i.waiting = append(i.waiting, r)
	}
}

func (i *issuer) askLater(r *tokenRequest) {
	r.missed = true
	i.later = append(i.later, r)
	i.retryAt = time.Now().Add(reissueAfter)
	i.upkeep.soon()
}

// retry asks again for the tokens whose rows were locked.
func (i *issuer) retry() {
	i.retryAt = time.Time{}
	i.waiting, i.later = append(i.waiting, i.later...), nil
	if len(i.waiting) > 0 {
		i.send()
	}
}

func (i *issuer) fail(r *tokenRequest, cause error) {
	i.wakeups.finish(r.w, lockError(r.w.key, tokens.Explain(cause), nil, "no fencing token"))
}

func (i *issuer) failAll(cause error) {
	for _, r := range append(i.waiting, i.later...) {
		if !r.w.finished {
			i.fail(r, cause)
		}
	}
	i.waiting, i.later = nil, nil
}

// sessionLost refuses the requests that were on their way: their tokens may have been issued, and nobody knows the
// numbers.
func (i *issuer) sessionLost(s *session, cause error) {
	for _, b := range s.sent {
		for n := range b.queries {
			for _, r := range b.queries[n].tokens {
				if !r.w.finished {
					i.fail(r, cause)
				}
			}
		}
	}
	if i.session == s {
		i.session = nil
	}
	if len(i.waiting) > 0 && !i.conns.life.closed {
		i.send()
	}
}
