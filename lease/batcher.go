package lease

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/sift"
)

const (
	// maxRunning is how many statements of a batcher can be on their way before further calls are gathered.
	maxRunning = 8
	// minGathered is the number of calls from which one statement for all is cheaper than one for each.
	minGathered = 8
	// slowStatement is the duration after which a statement of a manager counts as slow.
	slowStatement = 50 * time.Millisecond
	// maxGathered is how many calls one statement can serve.
	maxGathered = 256
	// batchWithin bounds a statement for many, which no caller's ctx bounds.
	batchWithin = 30 * time.Second
)

// batcher sends the requests of many goroutines in one statement. While fewer than maxRunning statements are on their
// way, a call is sent alone and at once. Otherwise it is gathered with others until one of those statements has ended. A
// statement for many skips rows that somebody has locked, so no call waits for the lock of another call's key.
type batcher struct {
	send       func(ctx context.Context, batch []*call) (sent holder.Instant, err error) // nil: each call is sent alone
	late       func(c *call)                                                             // takes the answer to a caller that has left
	background *background
	slow       time.Duration // gathered calls do not wait for a statement that takes longer: it may wait for a lock

	mu       sync.Mutex // guards what follows, and the state of calls
	closed   bool
	running  []*running // in the order in which they began, without the slow ones
	gathered []*call
	watching bool // a timer looks for slow statements: only while calls are gathered
}

// running is a statement on its way.
type running struct {
	b     *batcher
	began time.Time
}

// call is one request to a batcher, and its answer.
type call struct {
	item
	done  chan struct{}
	left  bool   // its caller has left
	alone func() // set: the call is sent alone, and calls this when it has ended

	sent     holder.Instant
	err      error
	answered bool // by a row
	answer   answer
}

func itemsOf(batch []*call) []item {
	items := make([]item, len(batch))
	for i, c := range batch {
		items[i] = c.item
	}
	return items
}

// do sends a call together with others and reports whether there is an answer; err is part of the answer. If there is
// none, there are two cases. If ctx has ended, err is its error. Otherwise the caller must send the request alone, and
// call end afterwards.
func (b *batcher) do(ctx context.Context, c *call) (done bool, end func(), err error) {
	b.mu.Lock()
	if b.send == nil || b.closed {
		b.mu.Unlock()
		return false, func() {}, nil
	}
	if len(b.running) < maxRunning && len(b.gathered) == 0 {
		end := b.begin()
		b.mu.Unlock()
		return false, end, nil
	}
	c.done = make(chan struct{})
	b.gathered = append(b.gathered, c)
	b.watch()
	b.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
		b.mu.Lock()
		select {
		case <-c.done:
		default:
			c.left = true
			b.mu.Unlock()
			return false, nil, ctx.Err()
		}
		b.mu.Unlock()
	}
	switch {
	case c.alone != nil:
		return false, c.alone, nil
	case c.err == nil && !c.answered, isRetry(c.err):
		return false, func() {}, nil
	}
	return true, nil, c.err
}

// close makes gathered calls fail, and later calls be sent alone.
func (b *batcher) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, c := range b.gathered {
		c.err = ErrClosed
		close(c.done)
	}
	b.gathered = nil
}

// begin counts a statement until it ends or is slow. It is called with mu held.
func (b *batcher) begin() (end func()) {
	r := &running{b, time.Now()}
	b.running = append(b.running, r)
	return r.end
}

func (r *running) end() {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	r.b.leave(r)
}

// leave lets gathered calls follow a statement. It is called with mu held.
func (b *batcher) leave(r *running) {
	if i := slices.Index(b.running, r); i >= 0 {
		b.running = slices.Delete(b.running, i, i+1)
		b.sendNext()
	}
}

// watch has a timer look for slow statements. A call that is sent alone and at once needs none. It is called with mu held.
func (b *batcher) watch() {
	if b.watching || len(b.gathered) == 0 || len(b.running) == 0 {
		return
	}
	b.watching = true
	time.AfterFunc(b.slow-time.Since(b.running[0].began), func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.watching = false
		for len(b.running) > 0 && time.Since(b.running[0].began) >= b.slow {
			b.leave(b.running[0])
		}
		b.watch()
	})
}

// sendNext sends the gathered calls, or only the first of them, alone. It is called with mu held.
func (b *batcher) sendNext() {
	batch := b.take()
	switch {
	case len(batch) == 0:
	case len(batch) == 1:
		batch[0].alone = b.begin()
		close(batch[0].done)
	default:
		end := b.begin()
		b.background.start(func() {
			defer end()
			b.run(batch)
		})
	}
}

// take removes the calls of the next statement from the gathered ones, no key twice. It is called with mu held.
func (b *batcher) take() (batch []*call) {
	most := maxGathered
	if len(b.gathered) < minGathered {
		most = 1
	}
	taken := map[holder.Place]bool{}
	stay := b.gathered[:0]
	for _, c := range b.gathered {
		switch {
		case c.left:
		case len(batch) == most || taken[c.place()]:
			stay = append(stay, c)
		default:
			taken[c.place()] = true
			batch = append(batch, c)
		}
	}
	clear(b.gathered[len(stay):])
	b.gathered = stay
	return batch
}

// run sends a batch and hands out the answers. If the server refuses it because of a row, the calls are sent in smaller and smaller parts, so that
// only the call at fault gets the error.
func (b *batcher) run(batch []*call) {
	ctx, cancel := context.WithTimeout(b.background.ctx, batchWithin)
	defer cancel()
	sift.Parts(ctx, batch, func(part []*call) error { return b.sendPart(ctx, part) }, func(part []*call, err error) bool {
		b.handOut(part, err)
		return true
	})
}

// sendPart sends those calls whose callers are still there. Answers that a statement gave before it was refused do not count.
func (b *batcher) sendPart(ctx context.Context, part []*call) error {
	there := make([]*call, 0, len(part))
	b.mu.Lock()
	for _, c := range part {
		c.sent, c.answered, c.answer = holder.Instant{}, false, answer{}
		if !c.left {
			there = append(there, c)
		}
	}
	b.mu.Unlock()
	if len(there) == 0 {
		return nil
	}
	sent, err := b.send(ctx, there)
	for _, c := range there {
		c.sent = sent
	}
	return err
}

// handOut gives calls their answers.
func (b *batcher) handOut(part []*call, err error) {
	var late []*call
	b.mu.Lock()
	if err != nil && b.closed {
		err = ErrClosed
	}
	for _, c := range part {
		c.err = err
		if c.left {
			late = append(late, c)
		}
		close(c.done)
	}
	b.mu.Unlock()
	for _, c := range late {
		b.late(c)
	}
}
