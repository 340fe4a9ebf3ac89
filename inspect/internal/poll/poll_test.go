package poll_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gormlock/gormlock/inspect/internal/poll"
)

const every = 2 * time.Second

// looks counts the looks, and returns the count or err.
type looks struct {
	mu    sync.Mutex
	count int
	err   error
	hang  bool
}

func (l *looks) look(ctx context.Context) (int, error) {
	l.mu.Lock()
	hang := l.hang
	l.mu.Unlock()
	if hang {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	return l.count, l.err
}

func (l *looks) become(err error, hang bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err, l.hang = err, hang
}

func (l *looks) counted() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

func run(t *testing.T, body func(t *testing.T, l *looks, p *poll.Poller[int])) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &looks{}
		p := poll.New(every, l.look)
		defer p.Close()
		body(t, l, p)
	})
}

// pass lets time pass in the bubble, and waits until all goroutines are idle.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func ask(t *testing.T, p *poll.Poller[int]) poll.State[int] {
	t.Helper()
	state, err := p.Ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func TestPoller_looksOnceForAllWhoAsk(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, l *looks, p *poll.Poller[int]) {
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if state := ask(t, p); state.Seen == nil || *state.Seen != 1 || state.Failure != nil {
					t.Errorf("%+v", state)
				}
			})
		}
		all.Wait()
		if n := l.counted(); n != 1 {
			t.Errorf("%d looks for fifty who asked at once", n)
		}
	})
}

func TestPoller_stopsAfterAMinuteWithoutAQuestion(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, l *looks, p *poll.Poller[int]) {
		ask(t, p)
		pass(10 * time.Minute)
		stopped := l.counted()
		if stopped > 35 {
			t.Errorf("%d looks for one question", stopped)
		}
		pass(time.Hour)
		if n := l.counted(); n != stopped {
			t.Errorf("it looked %d times while nobody asked", n-stopped)
		}
		if state := ask(t, p); state.Failure != nil || *state.Seen != stopped+1 {
			t.Errorf("asked again after an hour: %+v, want a look of now", state)
		}
	})
}

func TestPoller_keepsWhatItSawThroughFailures(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, l *looks, p *poll.Poller[int]) {
		ask(t, p)
		refused := errors.New("refused")
		l.become(refused, false)
		began := time.Now()
		var state poll.State[int]
		for range 5 {
			pass(every)
			state = ask(t, p)
		}
		if !errors.Is(state.Failure, refused) || state.Seen == nil || *state.Seen != 1 || state.Since.Sub(began) > every {
			t.Errorf("%+v, want the first look and the first failure in a row", state)
		}
		l.become(nil, false)
		pass(2 * every)
		if state := ask(t, p); state.Failure != nil || *state.Seen == 1 {
			t.Errorf("after the failures: %+v", state)
		}
	})
}

// The server does not answer at all: callers get an error within seconds, and the look itself is bounded.
func TestPoller_doesNotWaitForALookThatHangs(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, l *looks, p *poll.Poller[int]) {
		ask(t, p)
		l.become(nil, true)
		pass(every + 9*time.Second)
		began := time.Now()
		state := ask(t, p)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("the answer took %s", took)
		}
		if state.Failure == nil || !strings.Contains(state.Failure.Error(), "no answer for") || *state.Seen != 1 {
			t.Errorf("%+v", state)
		}
		pass(20 * time.Second)
		if state := ask(t, p); !errors.Is(state.Failure, context.DeadlineExceeded) {
			t.Errorf("%+v", state)
		}
	})
}

func TestPoller_answersNobodyAfterClose(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, l *looks, p *poll.Poller[int]) {
		l.become(nil, true)
		asked := make(chan error, 1)
		go func() {
			_, err := p.Ask(context.Background())
			asked <- err
		}()
		synctest.Wait()
		p.Close()
		if err := <-asked; err != nil {
			t.Errorf("who asked before: %v", err)
		}
		if _, err := p.Ask(t.Context()); !errors.Is(err, poll.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
	})
}
