package holder

import (
	"context"
	"sync"
)

// Contexts are the contexts that end with a lock. The zero value has none. The mutex that is given to [Contexts.Bind] guards them, and callers of
// [Contexts.End] must hold it.
type Contexts struct{ bound map[*binding]struct{} }

type binding struct{ cancel context.CancelCauseFunc }

// Bind returns a context that ends with the lock. If the lock has ended, so has the context: ended returns why, and is called with mu held. stop
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

// IsEmpty reports whether there is no context to end.
func (c *Contexts) IsEmpty() bool { return len(c.bound) == 0 }

// End ends all contexts, with a cause. It runs no callers' code: functions given to context.AfterFunc run in their own goroutines.
func (c *Contexts) End(cause error) {
	for b := range c.bound {
		b.cancel(cause)
	}
	c.bound = nil
}
