package sessionlock

import "sync"

// wakeups are callers that have their answer and are woken when mu is unlocked.
type wakeups struct {
	count  int             // how many callers are to be woken
	heads  []chan struct{} // of the callers that the goroutine wakes which unlocks mu
	unused []chan struct{} // empty, for the next heads
	chains []*chain        // the goroutine that unlocks mu wakes the first caller of each
	own    *ownChains
}

// chain is a list of callers that were answered together. Each wakes the next before it returns, at the latest when it
// has done what it found to do when it unlocked mu itself. The callers of a chain came on one processor, and a woken
// goroutine runs on the processor of the one that woke it. So a chain stays on the processor that has the memory of its
// callers.
type chain struct {
	first chan struct{}
	last  *waiter
}

// ownChains is one chain for each processor. It needs no mutex. It is not a part of wakeups: new callers read it, and the
// memory of wakeups moves to another processor whenever somebody is woken.
type ownChains struct{ pool sync.Pool }

// get returns the chain of this processor.
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

// refuse gives a waiter for a key the error of its request.
func (k *wakeups) refuse(w *waiter, state, cause error) {
	k.finish(w, lockError(w.key, state, cause, ""))
}

// takeAll empties the chains and returns whom to wake. The chain of this processor is the last, so it goes on here. Give
// the list to reuse afterwards.
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
