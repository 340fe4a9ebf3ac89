package sessionlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/fence"
)

// issuing is a token that somebody waits for.
type issuing struct {
	w      *waiter
	id     lockID
	token  fence.Token
	number int64
	missed bool // its row was locked by somebody
	alone  bool // it was in a statement that failed, perhaps by the fault of another key
}

const (
	undefinedTable = "42P01"
	// rowTimeout is how long the others wait for a token row that somebody has locked.
	// After that they go without it.
	rowTimeout = 50 * time.Millisecond
	// reissueAfter is how long such a row is left alone.
	reissueAfter = 10 * time.Millisecond
)

var (
	errUnused     = errors.New("gormlock: not needed")
	errNotDurable = errors.New("the server did not wait for its commit to be durable")
)

// number issues the token of a lock that is held. It is durable when number returns:
// a token on a connection of its own, for a commit that waits for a standby must not
// hold up tries and unlocks.
func (m *Manager) number(ctx context.Context, r *request) (fence.Token, error) {
	token, err := fence.For(r.key, 0)
	if err != nil {
		return fence.Token{}, err
	}
	is := &issuing{w: newWaiter(r), id: r.id, token: token}
	is.w.issuing = is
	m.takeLane(is.w)
	m.arrive(is.w)
	if err := m.await(ctx, is.w); err != nil {
		return fence.Token{}, m.unanswered(ctx, r, err, &m.issuerError)
	}
	err = is.w.err
	is.w.reuse()
	is.token.Number = is.number
	return is.token, err
}

// callIssuer makes the issues travel, on a session that is dialled if there is none.
func (m *Manager) callIssuer() {
	switch {
	case m.issuer != nil:
		m.touch(m.issuer)
	case !m.issuerDue:
		m.issuerDue = true
		m.wg.Go(m.dialIssuer)
	}
}

// dialIssuer makes a session for tokens, however long it takes and somebody waits.
func (m *Manager) dialIssuer() {
	backoff := time.Duration(0)
	for {
		s, err := m.dial(m.ctx, numbers)
		m.mu.Lock()
		m.issuerError = err
		switch {
		case err != nil:
			m.refuseIssues(err)
		case m.adopt(s):
			m.issuer = s
			s.freeSince = time.Now()
			m.touch(s)
		}
		if err == nil || len(m.issues)+len(m.later) == 0 {
			m.issuerDue = false
			m.unlock(nil)
			return
		}
		m.unlock(nil)
		backoff = m.pause(backoff)
	}
}

// refuseIssues answers those who do not wait, and all where waiting cures nothing.
func (m *Manager) refuseIssues(cause error) {
	var pgErr *pgconn.PgError
	if errors.As(cause, &pgErr) && strings.HasPrefix(pgErr.Code, "42") { // no table, no right
		m.failIssues(cause)
		return
	}
	waiting := func(all []*issuing) []*issuing {
		return slices.DeleteFunc(all, func(is *issuing) bool {
			if is.w.try && !is.w.settled {
				m.failIssue(is, cause)
			}
			return is.w.settled
		})
	}
	m.issues, m.later = waiting(m.issues), waiting(m.later)
}

// boardIssues takes the issues that can go in one statement: no key twice.
func (m *Manager) boardIssues() (part, bool) {
	p := part{statement: issue, issues: map[lockID]*issuing{}}
	limit := maxIssues
	for _, is := range m.issues {
		if is.missed && !is.w.settled {
			p.statement = issueUnlocked
		}
		if is.alone && !is.w.settled {
			limit = 1
		}
	}
	var left []*issuing
	for _, is := range m.issues {
		switch {
		case is.w.settled: // its caller went away
		case p.issues[is.id] != nil || len(p.issues) == limit || p.statement == issueUnlocked && !is.missed:
			left = append(left, is)
		default:
			p.issues[is.id] = is
		}
	}
	m.issues = left
	return p, len(p.issues) > 0
}

// answerIssue hands out the tokens of one statement.
func (m *Manager) answerIssue(s *session, p *part) {
	s.freeSince = time.Now()
	switch {
	case p.err == nil:
	case p.err.Code == lockTimeout || p.err.Code == deadlock:
		m.missRows(p)
		return
	case len(p.issues) > 1 && p.err.Code != undefinedTable:
		m.askAlone(p)
		return
	}
	var err error
	switch {
	case p.err != nil:
		err = p.err
	case p.warned:
		err = errNotDurable
	}
	for _, is := range p.issues {
		switch {
		case is.w.settled:
		case err != nil:
			m.failIssue(is, err)
		case is.number == 0: // somebody has its row locked
			m.reissueLater(is)
		default:
			m.settle(is.w, nil)
		}
	}
}

// missRows asks again without waiting: for all whose answer a locked row kept back, and
// after that for those alone whose row it is.
func (m *Manager) missRows(p *part) {
	for _, is := range p.issues {
		if p.statement == issueUnlocked {
			m.reissueLater(is)
			continue
		}
		is.missed = true
		m.issues = append(m.issues, is)
	}
}

// askAlone asks again one by one, so that an error is answered to whom it is about: a
// name that the database's encoding does not have, a role that lacks a right.
func (m *Manager) askAlone(p *part) {
	for _, is := range p.issues {
		is.alone = true
		m.issues = append(m.issues, is)
	}
}

func (m *Manager) reissueLater(is *issuing) {
	is.missed = true
	m.later = append(m.later, is)
	m.issueAt = time.Now().Add(reissueAfter)
	m.tendSoon()
}

// reissue asks again for the tokens whose rows were locked.
func (m *Manager) reissue() {
	m.issueAt = time.Time{}
	m.issues, m.later = append(m.issues, m.later...), nil
	if len(m.issues) > 0 {
		m.callIssuer()
	}
}

func (m *Manager) failIssue(is *issuing, cause error) {
	var pgErr *pgconn.PgError
	if errors.As(cause, &pgErr) && pgErr.Code == undefinedTable {
		cause = fmt.Errorf("%w (fence.Migrate creates the table)", cause)
	}
	m.settle(is.w, &lockError{key: is.w.key, state: cause, detail: "no fencing token"})
}

func (m *Manager) failIssues(cause error) {
	for _, is := range append(m.issues, m.later...) {
		if !is.w.settled {
			m.failIssue(is, cause)
		}
	}
	m.issues, m.later = nil, nil
}

// loseNumbers answers those whose token was on its way: it may have been issued, and
// nobody knows which.
func (m *Manager) loseNumbers(s *session, cause error) {
	for _, f := range s.inflight {
		for i := range f.parts {
			for _, is := range f.parts[i].issues {
				if !is.w.settled {
					m.failIssue(is, cause)
				}
			}
		}
	}
	if m.issuer == s {
		m.issuer = nil
	}
	if len(m.issues) > 0 && !m.closed {
		m.callIssuer()
	}
}
