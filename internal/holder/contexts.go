package holder

import (
	"context"
	"sync"
)

// Contexts are those that end with a lock. The zero value has none. They belong to the mutex that [Contexts.Bind] is
// given, and whoever calls [Contexts.End] holds it.
type Contexts struct{ bound map[*binding]struct{} }

type binding struct{ cancel context.CancelCauseFunc }

// Bind returns a context that ends with the lock, or has ended where the lock has: ended is asked why, with mu held. stop
// ends the context and nothing else.
func (c *Contexts) Bind(ctx context.Context, mu sync.Locker, ended func() error) (bound context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	b := &binding{cancel}
	mu.Lock()
	defer mu.Unlock()
	if err := ended(); err != nil {
		cancel(err)
		return ctx, func() {}
	}
	if c.bound == nil {
		c.bound = map[*binding]struct{}{}
	}
	c.bound[b] = struct{}{}
	return ctx, func() {
		mu.Lock()
		delete(c.bound, b)
		mu.Unlock()
		cancel(nil)
	}
}

// IsEmpty reports whether none has to end.
func (c *Contexts) IsEmpty() bool { return len(c.bound) == 0 }

// End ends them all, with a cause. It runs nobody else's code: what context.AfterFunc was given runs in goroutines of
// its own.
func (c *Contexts) End(cause error) {
	for b := range c.bound {
		b.cancel(cause)
	}
	c.bound = nil
}
