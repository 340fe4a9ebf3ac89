package lease

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
)

const (
	// firstSearch and longestSearch are the shortest and the longest pause between two searches for an acquisition.
	firstSearch   = 20 * time.Millisecond
	longestSearch = time.Second
	// searchWithin bounds one search.
	searchWithin = 5 * time.Second
)

// unconfirmed are acquisitions that may be in the table although nobody holds them, because the statement that took or released them got no answer.
// The manager searches for them until it has released them, or they have run out.
type unconfirmed struct {
	store      *store
	waiters    *waiters
	background *background

	mu     sync.Mutex
	closed bool
	sought []*sought
}

// sought is one such acquisition.
type sought struct {
	item
	next  time.Duration // the time of the next search, on the monotonic clock
	pause time.Duration
	until time.Duration // when it will have run out
}

// add makes the manager search for an acquisition of the given length, and release it after the span of its item.
func (u *unconfirmed) add(it item, ttl time.Duration) {
	u.mu.Lock()
	closed := u.closed
	now := u.store.clock().Mono
	if !closed {
		u.sought = append(u.sought, &sought{item: it, next: now, pause: firstSearch, until: now + min(ttl, math.MaxInt64-now)})
	}
	u.mu.Unlock()
	if !closed {
		u.background.wakeBy(now)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), longestSearch) // the manager is closed, so background is not running
	defer cancel()
	_, _ = u.store.releaseOne(ctx, it)
}

// due returns the acquisitions to search for now, and when the next search is due.
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

// giveBack searches for acquisitions and releases them. If that fails, it searches for them again later.
func (u *unconfirmed) giveBack(items []item) {
	ctx, cancel := context.WithTimeout(u.background.ctx, searchWithin)
	defer cancel()
	there, _, _ := u.store.release(ctx, items)
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

// close returns the acquisitions that were not found yet. From now on, add releases an acquisition itself.
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
