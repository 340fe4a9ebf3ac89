package lease

import (
	"context"
	"sync"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
)

const (
	// maxRunning is how many statements of a batcher are on their way before others gather.
	maxRunning = 8
	// minGathered is from how many on one statement for all is cheaper than one for each.
	minGathered = 8
	// slowStatement is what slow is for a manager.
	slowStatement = 50 * time.Millisecond
	// maxGathered is how many travel in one statement.
	maxGathered = 256
	// batchWithin bounds a statement that nobody's ctx bounds.
	batchWithin = 30 * time.Second
)

// batcher sends what many goroutines want at once in one statement. Who comes when fewer than
// maxRunning are on their way goes alone and at once, by the statement for one; the others
// gather until one of those has ended. A statement for many passes over rows that somebody
// has locked, so that nobody waits for the lock of another's key.
type batcher struct {
	send       func(ctx context.Context, batch []*call) (sent holder.Instant, err error) // nil: everybody goes alone
	late       func(c *call)                                                             // for the answer to somebody who left
	background *background
	slow       time.Duration // after it a statement is not waited for by those who gather: it may wait for a lock

	mu       sync.Mutex // guards what follows, and the state of calls
	closed   bool
	running  int
	gathered []*call
}

// call is what somebody wants of a batcher, and the answer.
type call struct {
	item
	done  chan struct{}
	left  bool   // nobody waits for the answer any more
	alone func() // set: the call goes alone, and calls this when it has ended

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

// do makes a call in company, and reports whether there is an answer, such as err. If not,
// it is to be made alone, also after company, and end is called when that is done; or ctx
// has ended, which is err then.
func (b *batcher) do(ctx context.Context, c *call) (done bool, end func(), err error) {
	b.mu.Lock()
	if b.send == nil || b.closed {
		b.mu.Unlock()
		return false, func() {}, nil
	}
	if b.running < maxRunning && len(b.gathered) == 0 {
		end := b.begin()
		b.mu.Unlock()
		return false, end, nil
	}
	c.done = make(chan struct{})
	b.gathered = append(b.gathered, c)
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

// close makes those who come from now on go alone, and those who have gathered fail.
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

// begin counts a statement until it ends, or is slow. It is called with mu held.
func (b *batcher) begin() (end func()) {
	b.running++
	var once sync.Once
	leave := func() {
		once.Do(func() {
			b.mu.Lock()
			b.running--
			b.sendNext()
			b.mu.Unlock()
		})
	}
	slow := time.AfterFunc(b.slow, leave)
	return func() {
		slow.Stop()
		leave()
	}
}

// sendNext sends those who gathered, or the first of them alone. It is called with mu held.
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

// take takes from those who gathered whoever goes next: no key twice. It is called with mu held.
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

// run sends a batch and hands out the answers.
func (b *batcher) run(batch []*call) {
	ctx, cancel := context.WithTimeout(b.background.ctx, batchWithin)
	defer cancel()
	sent, err := b.send(ctx, batch)
	var late []*call
	b.mu.Lock()
	if err != nil && b.closed {
		err = ErrClosed
	}
	for _, c := range batch {
		c.sent, c.err = sent, err
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
