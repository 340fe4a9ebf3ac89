package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gormlock/gormlock/internal/cause"
	"github.com/gormlock/gormlock/lockkey"
)

// electionWithin bounds one answer of [Candidate.IsLeader], and the release of a leadership that nobody wants any more.
const electionWithin = 5 * time.Second

// Candidate stands for the leadership of a key, for schedulers that ask before each run whether they lead. It has the
// shape of the Elector of gocron: gocron.WithDistributedElector(lease.Elector(leases, key, 15*time.Second)).
type Candidate struct {
	m   *Manager
	key lockkey.Key
	ttl time.Duration

	asking chan struct{} // has room for one: the caller that asks the database

	mu       sync.Mutex
	lease    *Lease
	resigned bool
}

// Elector returns a candidate for the leadership of key. It holds a lease of ttl from the first [Candidate.IsLeader] that
// finds it free. IsLeader returns the error of a nil m, and of an invalid key or ttl.
func Elector(m *Manager, key lockkey.Key, ttl time.Duration) *Candidate {
	return &Candidate{m: m, key: key, ttl: ttl, asking: make(chan struct{}, 1)}
}

var errNilManager = fmt.Errorf("%w: Elector of a nil Manager, give it what New returned", ErrOption)

// IsLeader returns nil if this process leads, otherwise an error that says why not. It is [ErrNotAcquired] if another process
// leads, and the error of ctx if ctx ends before the server has answered. IsLeader acquires the leadership if it is free, and keeps it
// until the manager is closed, [Candidate.Resign] is called or it is lost. After a loss the next call tries again. IsLeader returns within 5
// seconds, whatever ctx and the server do.
func (c *Candidate) IsLeader(ctx context.Context) error {
	if c.m == nil {
		return errNilManager
	}
	if known, err := c.know(); known {
		return err
	}
	if err := ctx.Err(); err != nil {
		return cause.Add(ctx, leaseError(c.key, err, nil, "not asked for"))
	}
	asking, cancel := context.WithTimeout(ctx, electionWithin)
	defer cancel()
	select {
	case c.asking <- struct{}{}:
	case <-asking.Done():
		return c.unanswered(ctx, asking)
	}
	answered := make(chan error, 1)
	go func() { // a driver that ignores ctx may keep it running
		defer func() { <-c.asking }()
		answered <- c.stand(asking)
	}()
	select {
	case err := <-answered:
		return err
	case <-asking.Done():
		return c.unanswered(ctx, asking)
	}
}

// unanswered is the error of a caller that leaves before it is known who leads.
func (c *Candidate) unanswered(ctx, asking context.Context) error {
	err := unanswered(ctx, asking, electionWithin, asking.Err())
	return cause.Add(ctx, leaseError(c.key, err, nil, "it is not known who leads"))
}

// know returns the answer if the database need not be asked.
func (c *Candidate) know() (known bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.resigned:
		return true, leaseError(c.key, ErrReleased, nil, "resigned")
	case c.lease == nil:
		return false, nil
	}
	err = c.lease.Err()
	return err == nil || errors.Is(err, ErrClosed), err
}

// stand tries to take the leadership.
func (c *Candidate) stand(ctx context.Context) error {
	if known, err := c.know(); known { // the caller before this one acquired it
		return err
	}
	l, err := c.m.TryAcquire(ctx, c.key, c.ttl, as(candidate))
	if err != nil {
		return err
	}
	c.mu.Lock()
	if !c.resigned {
		c.lease = l
		c.mu.Unlock()
		return nil
	}
	c.mu.Unlock()
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), electionWithin)
	defer cancel()
	if err := l.Release(detached); err != nil {
		return err
	}
	return leaseError(c.key, ErrReleased, nil, "resigned")
}

// Resign releases the leadership, if this process has it, and never acquires it again. It returns when the database has
// confirmed that, and no [Candidate.IsLeader] is running any more. A leadership that was lost before is no error.
func (c *Candidate) Resign(ctx context.Context) error {
	if c.m == nil {
		return errNilManager
	}
	c.mu.Lock()
	l := c.lease
	c.lease, c.resigned = nil, true
	c.mu.Unlock()
	if l == nil {
		select {
		case c.asking <- struct{}{}: // from now on nobody asks, and nobody acquires it
			<-c.asking
		case <-ctx.Done():
			return cause.Add(ctx, leaseError(c.key, ctx.Err(), nil, "it may be granted still, and is given back then"))
		}
	}
	if l == nil {
		return nil
	}
	if err := l.Release(ctx); !errors.Is(err, ErrLost) {
		return err
	}
	return nil
}
