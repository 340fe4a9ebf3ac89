package lease

import (
	"context"
	"sync"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
)

const (
	// firstSearch and longestSearch are the pauses between two looks for the same acquisition.
	firstSearch   = 20 * time.Millisecond
	longestSearch = time.Second
	// searchWithin bounds one look.
	searchWithin = 5 * time.Second
)

// unconfirmed are acquisitions that may be in the table although nobody holds them, or not any more: the statement that
// took them was not answered, or their release. They are looked for until they are found, and given back, or have run out.
type unconfirmed struct {
	store      *store
	waiters    *waiters
	background *background

	mu     sync.Mutex
	closed bool
	sought []*sought
}

// sought is one of them.
type sought struct {
	item
	next  time.Duration // when it is looked for again, on the monotonic clock
	pause time.Duration
	until time.Duration // when it will have run out
}

// add has an acquisition of the given length looked for, to be given back after the span of it.
func (u *unconfirmed) add(it item, ttl time.Duration) {
	u.mu.Lock()
	closed := u.closed
	now := u.store.clock().Mono
	if !closed {
		u.sought = append(u.sought, &sought{item: it, next: now, pause: firstSearch, until: now + ttl})
	}
	u.mu.Unlock()
	if !closed {
		u.background.wakeBy(now)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), longestSearch) // nobody is left to do it
	defer cancel()
	_, _ = u.store.release(ctx, []item{it})
}

// due returns those to look for now, and when the next one is due.
func (u *unconfirmed) due(now time.Duration) (due []item, next time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	next = now + idle
	kept := u.sought[:0]
	for _, s := range u.sought {
		if s.until < now {
			continue
		}
		if s.next <= now {
			s.pause = min(2*s.pause, longestSearch)
			s.next = now + holder.Jitter(s.pause)
			due = append(due, s.item)
		}
		kept = append(kept, s)
		next = min(next, s.next)
	}
	clear(u.sought[len(kept):])
	u.sought = kept
	return due, next
}

// giveBack looks for some of them. After an error they are looked for again.
func (u *unconfirmed) giveBack(items []item) {
	ctx, cancel := context.WithTimeout(u.background.ctx, searchWithin)
	defer cancel()
	there, err := u.store.release(ctx, items)
	if err != nil {
		return
	}
	found := map[string]bool{}
	for _, i := range there {
		found[items[i].holder] = true
		u.waiters.wake(items[i].place())
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	kept := u.sought[:0]
	for _, s := range u.sought {
		if !found[s.holder] {
			kept = append(kept, s)
		}
	}
	clear(u.sought[len(kept):])
	u.sought = kept
}

// close returns those that were not found yet. What is added from now on is given back by whoever adds it.
func (u *unconfirmed) close() (left []item) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for _, s := range u.sought {
		left = append(left, s.item)
	}
	u.sought = nil
	return left
}
