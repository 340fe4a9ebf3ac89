package lease

import (
	"context"
	"database/sql"
	"sync"
	"time"
)

const (
	// maxFlights is how many statements of a lane are on their way before others gather.
	maxFlights = 8
	// minGathered is from how many on one statement for all is cheaper than one for each.
	minGathered = 8
	// slowFlight is after how long a statement is not waited for by those who gather: it may wait
	// for a lock.
	slowFlight = 50 * time.Millisecond
	// maxGathered is how many travel in one statement.
	maxGathered = 256
	// flightWithin bounds a statement that nobody's ctx bounds.
	flightWithin = 30 * time.Second
)

// lane sends what many goroutines want at once in one statement. Who comes when fewer than
// maxFlights are on their way goes alone and at once, by the statement for one; the others
// gather until one of those has landed. A statement for many passes over rows that somebody
// has locked, so that nobody waits for the lock of another's key. Its fields belong to
// Manager.mu.
type lane struct {
	m        *Manager
	text     string // the statement for many, "" where there is none
	args     func(batch []*errand) []any
	scan     func(batch []*errand, rows *sql.Rows) error
	late     func(e *errand) // for the answer to somebody who left
	flying   int
	gathered []*errand
}

// errand is what somebody wants of a lane, and the answer.
type errand struct {
	listed
	done chan struct{}
	left bool   // nobody waits for the answer any more
	land func() // set: the errand is done alone, and calls this when it is

	sent     instant
	err      error
	answered bool // by a row
	refusal  refusal
}

// ride does an errand in company, and reports whether there is an answer, such as err. If not,
// it is to be done alone, also after company, and land is called when that is done; or ctx
// has ended, which is err then.
func (l *lane) ride(ctx context.Context, e *errand) (done bool, land func(), err error) {
	m := l.m
	m.mu.Lock()
	if l.text == "" || m.closed {
		m.mu.Unlock()
		return false, func() {}, nil
	}
	if l.flying < maxFlights && len(l.gathered) == 0 {
		land := l.takeOff()
		m.mu.Unlock()
		return false, land, nil
	}
	e.done = make(chan struct{})
	l.gathered = append(l.gathered, e)
	m.mu.Unlock()
	select {
	case <-e.done:
	case <-ctx.Done():
		m.mu.Lock()
		select {
		case <-e.done:
		default:
			e.left = true
			m.mu.Unlock()
			return false, nil, ctx.Err()
		}
		m.mu.Unlock()
	}
	switch {
	case e.land != nil:
		return false, e.land, nil
	case e.err == nil && !e.answered, isRetry(e.err):
		return false, func() {}, nil
	}
	return true, nil, e.err
}

// takeOff counts a statement until it lands, or is slow. It is called with mu held.
func (l *lane) takeOff() (land func()) {
	l.flying++
	var once sync.Once
	leave := func() {
		once.Do(func() {
			l.m.mu.Lock()
			l.flying--
			l.depart()
			l.m.mu.Unlock()
		})
	}
	slow := time.AfterFunc(slowFlight, leave)
	return func() {
		slow.Stop()
		leave()
	}
}

// depart sends those who gathered, or the first of them alone. It is called with mu held.
func (l *lane) depart() {
	batch := l.board()
	switch {
	case len(batch) == 0:
	case l.m.closed:
		for _, e := range batch {
			e.err = ErrClosed
			close(e.done)
		}
	case len(batch) == 1:
		batch[0].land = l.takeOff()
		close(batch[0].done)
	default:
		land := l.takeOff()
		l.m.wg.Go(func() {
			defer land()
			l.fly(batch)
		})
	}
}

// board takes from those who gathered whoever goes next: no key twice.
func (l *lane) board() (batch []*errand) {
	most := maxGathered
	if len(l.gathered) < minGathered && !l.m.closed {
		most = 1
	}
	aboard := map[place]bool{}
	stay := l.gathered[:0]
	for _, e := range l.gathered {
		switch {
		case e.left:
		case len(batch) == most || aboard[placeOf(e.token)]:
			stay = append(stay, e)
		default:
			aboard[placeOf(e.token)] = true
			batch = append(batch, e)
		}
	}
	clear(l.gathered[len(stay):])
	l.gathered = stay
	return batch
}

// fly sends a batch and hands out the answers.
func (l *lane) fly(batch []*errand) {
	ctx, cancel := context.WithTimeout(l.m.ctx, flightWithin)
	defer cancel()
	sent, err := l.m.query(ctx, l.text, l.args(batch), func(rows *sql.Rows) error { return l.scan(batch, rows) })
	var late []*errand
	l.m.mu.Lock()
	if err != nil && l.m.closed {
		err = ErrClosed
	}
	for _, e := range batch {
		e.sent, e.err = sent, err
		if e.left {
			late = append(late, e)
		}
		close(e.done)
	}
	l.m.mu.Unlock()
	for _, e := range late {
		l.late(e)
	}
}
