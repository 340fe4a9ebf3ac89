package sessionlock

import "sync"

// wakeups are callers that have their answer and are woken when the mutex is given back.
type wakeups struct {
	count  int             // how many are to be woken
	heads  []chan struct{} // of those that are woken by whoever gives back the mutex
	unused []chan struct{} // empty, for the next heads
	chains []*chain        // whose first is woken by whoever gives back the mutex
	own    *ownChains
}

// chain is callers that were answered together and wake each other: each wakes the next before it returns, at the latest
// when it has seen to what it found to do when it gave back the mutex itself. It is made of callers that came on one
// processor, and whoever is woken runs on the processor of who woke it: so a chain stays where the memory of its callers
// is.
type chain struct {
	first chan struct{}
	last  *waiter
}

// ownChains is one chain for each processor. It needs no mutex, and is no part of wakeups: those who arrive read it, whose
// memory would move whenever somebody is woken.
type ownChains struct{ pool sync.Pool }

// get is the chain of this processor.
func (o *ownChains) get() *chain {
	c, ok := o.pool.Get().(*chain)
	if !ok {
		c = &chain{}
	}
	o.pool.Put(c)
	return c
}

// finish gives w its answer.
func (k *wakeups) finish(w *waiter, err error) {
	w.finished, w.err = true, err
	k.count++
	switch c := w.chain; {
	case c == nil:
		k.heads = append(k.heads, w.done)
	case c.last == nil:
		c.first, c.last = w.done, w
		k.chains = append(k.chains, c)
	default:
		c.last.after, c.last = w.done, w
	}
}

// refuse answers a waiter for a key with what became of it.
func (k *wakeups) refuse(w *waiter, state, cause error) {
	k.finish(w, lockError(w.key, state, cause, ""))
}

// takeAll empties the chains and returns whom to wake. The chain of this processor is the last, so that it goes on here.
// The list is to be given to reuse.
func (k *wakeups) takeAll() []chan struct{} {
	heads := k.heads
	k.heads, k.unused, k.count = k.unused, nil, 0
	if len(k.chains) == 0 {
		return heads
	}
	own := k.own.get()
	var last chan struct{}
	for _, c := range k.chains {
		if c == own {
			last = c.first
		} else {
			heads = append(heads, c.first)
		}
		*c = chain{}
	}
	clear(k.chains)
	k.chains = k.chains[:0]
	if last != nil {
		heads = append(heads, last)
	}
	return heads
}

// reuse keeps an emptied list for the next heads.
func (k *wakeups) reuse(heads []chan struct{}) { k.unused = heads[:0] }
