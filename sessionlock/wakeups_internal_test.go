package sessionlock

import (
	"errors"
	"testing"
	"time"
	"unsafe"
)

func newTestWaiter() *waiter { return &waiter{outcome: outcome{done: make(chan struct{}, 1)}} }

// Each caller is woken once: by the goroutine that unlocks the mutex, or by the caller before it in the chain.
func TestWakeups_everybodyOnce(t *testing.T) {
	t.Parallel()
	k := wakeups{own: &ownChains{}}
	long, short := &chain{}, &chain{}
	var all []*waiter
	for i := range 20 {
		w := newTestWaiter()
		w.chain = []*chain{long, short, nil, long}[i%4]
		all = append(all, w)
		k.finish(w, nil)
	}
	woken := make(chan *waiter, 2*len(all))
	for _, w := range all {
		go func() {
			w.wait()
			woken <- w
		}()
	}
	if k.count != len(all) {
		t.Errorf("%d are to be woken, want %d", k.count, len(all))
	}
	heads := k.takeAll()
	if want := 5 + 2; len(heads) != want || k.count != 0 {
		t.Errorf("%d are woken by hand, want one of each chain and those without", len(heads))
	}
	for _, done := range heads {
		done <- struct{}{}
	}
	seen := map[*waiter]bool{}
	for range all {
		select {
		case w := <-woken:
			seen[w] = true
		case <-time.After(bound):
			t.Fatalf("%d of %d are woken", len(seen), len(all))
		}
	}
	if len(seen) != len(all) {
		t.Errorf("%d of %d are woken", len(seen), len(all))
	}
	if *long != (chain{}) || *short != (chain{}) {
		t.Error("a chain holds on to who was woken")
	}
	clear(heads)
	k.reuse(heads)
	k.finish(all[0], nil)
	k.takeAll()
	k.finish(all[1], nil)
	if again := k.takeAll(); len(again) != 1 {
		t.Errorf("%d are woken, want one", len(again))
	}
}

// bound is how long a test waits for something before it fails.
const bound = 30 * time.Second

func TestWakeups_refuse(t *testing.T) {
	t.Parallel()
	k := wakeups{own: &ownChains{}}
	w := newTestWaiter()
	w.key = key(7)
	k.refuse(w, ErrNotAcquired, errSilent)
	if !w.finished || !errors.Is(w.err, ErrNotAcquired) || !errors.Is(w.err, errSilent) {
		t.Errorf("finished %v with %v", w.finished, w.err)
	}
}

func TestQueue(t *testing.T) {
	t.Parallel()
	var q queue
	a, b, c := &waiter{}, &waiter{}, &waiter{}
	a.try, c.mode = true, 1
	for _, w := range []*waiter{a, b, c} {
		q.push(w)
	}
	if q.triesOnly() || !q.wants(0) || !q.wants(1) {
		t.Error("does not see who waits, or in which mode")
	}
	q.remove(b)
	if q.first != a || a.next != c || c.prev != a || q.last != c || b.next != nil || b.prev != nil {
		t.Error("the middle one leaves a hole")
	}
	q.remove(c)
	if !q.triesOnly() || q.wants(1) || q.last != a {
		t.Error("the last one is still there")
	}
	q.remove(a)
	if q.first != nil || q.last != nil || !q.triesOnly() {
		t.Error("not empty")
	}
}

// Each of 1,000 callers has a waiter, which two processors hand to each other. It is three cache lines, and shares none with another waiter.
func TestWaiter_isThreeCacheLines(t *testing.T) {
	t.Parallel()
	if size := unsafe.Sizeof(waiter{}); unsafe.Sizeof(uintptr(0)) == 8 && size > 3*64 {
		t.Errorf("a waiter has %d bytes, more than 192: its memory class is no multiple of a cache line then", size)
	}
}
