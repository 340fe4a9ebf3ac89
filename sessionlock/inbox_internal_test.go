package sessionlock

import (
	"sync"
	"testing"
)

// takeAll returns all callers, in the order in which they came.
func TestInbox_keepsTheOrder(t *testing.T) {
	t.Parallel()
	const goroutines, each = 8, 1000
	var b inbox
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				w := &waiter{}
				w.id.Space, w.id.ID = int16(g), int64(i)
				b.put(w)
			}
		})
	}
	over := make(chan struct{})
	go func() {
		wg.Wait()
		close(over)
	}()
	var next [goroutines]int64
	take := func() {
		for w := b.takeAll(); w != nil; {
			if w.id.ID != next[w.id.Space] {
				t.Errorf("number %d of %d comes when %d is next", w.id.ID, w.id.Space, next[w.id.Space])
			}
			next[w.id.Space] = w.id.ID + 1
			after := b.next(w)
			if w.earlier != nil {
				t.Error("who was taken out is still in")
			}
			w = after
		}
	}
	for going := true; going; {
		select {
		case <-over:
			going = false
		default:
		}
		take()
	}
	for g, n := range next {
		if n != each {
			t.Errorf("%d of %d came out of %d", n, each, g)
		}
	}
	if !b.isEmpty() {
		t.Error("not empty when all are out")
	}
}

// While a goroutine is about to serve all callers, a new caller tries to lock the mutex only if there are many.
func TestInbox_triesItself(t *testing.T) {
	t.Parallel()
	var b inbox
	if !b.triesItself() {
		t.Error("nobody lets it in")
	}
	b.combine(true)
	tried := 0
	for i := range 2 * secondBatch {
		if b.triesItself() {
			if tried++; i != secondBatch-1 {
				t.Errorf("number %d tries", i)
			}
		}
	}
	if tried != 1 {
		t.Errorf("%d tried of as many as make two batches", tried)
	}
	b.takeAll()
	b.combine(false)
	if !b.triesItself() {
		t.Error("after that nobody lets it in")
	}
}
