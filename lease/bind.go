package lease

import (
	"context"

	"github.com/gormlock/gormlock/fence"
)

// binding is a context that ends with a lease.
type binding struct{ cancel context.CancelCauseFunc }

// Bind returns a context that ends when the lease does: with the cause [ErrLost], or
// [ErrReleased]. It carries the fencing token, and makes an Acquire of the same key
// under it fail at once instead of waiting for itself. stop ends the context; the lease
// stays as it is.
func (l *Lease) Bind(ctx context.Context) (bound context.Context, stop func()) {
	ctx = fence.NewContext(ctx, l.claim.token)
	ctx = context.WithValue(ctx, holdsKey{}, &holds{l.m, l.place(), holdsOf(ctx)})
	ctx, cancel := context.WithCancelCause(ctx)
	b := &binding{cancel}
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.err != nil {
		cancel(l.err)
		return ctx, func() {}
	}
	if l.bound == nil {
		l.bound = map[*binding]struct{}{}
	}
	l.bound[b] = struct{}{}
	return ctx, func() {
		l.m.mu.Lock()
		delete(l.bound, b)
		l.m.mu.Unlock()
		cancel(nil)
	}
}

// holds is a list of the keys whose holder a context belongs to.
type holds struct {
	m     *Manager
	place place
	outer *holds
}

type holdsKey struct{}

func holdsOf(ctx context.Context) *holds {
	h, _ := ctx.Value(holdsKey{}).(*holds)
	return h
}

func (m *Manager) holdsAlready(ctx context.Context, at place) bool {
	for h := holdsOf(ctx); h != nil; h = h.outer {
		if h.m == m && h.place == at {
			return true
		}
	}
	return false
}
