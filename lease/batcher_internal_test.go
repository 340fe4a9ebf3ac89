package lease

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/holder"
)

// startBackground returns a background that is closed at the end of the test.
func startBackground(t *testing.T) *background {
	t.Helper()
	b := newBackground(t.Context())
	t.Cleanup(func() {
		b.close()
		b.wait()
	})
	return b
}

func callFor(id int64) *call {
	return &call{item: item{claim: claim{token: fence.Token{Space: 1, ID: id}}}}
}

// busy fills a batcher with statements for single calls, and returns a function that ends one of them.
func busy(t *testing.T, b *batcher) (end func()) {
	t.Helper()
	ends := make(chan func(), maxRunning)
	for range maxRunning {
		done, end, err := b.do(t.Context(), callFor(0))
		if done || err != nil {
			t.Fatalf("who comes first does not go alone: %v, %v", done, err)
		}
		ends <- end
	}
	return func() { (<-ends)() }
}

// gather makes calls for the given keys wait for the running statements, in this order.
func gather(t *testing.T, b *batcher, ids ...int64) (answers func() []bool) {
	t.Helper()
	var wg sync.WaitGroup
	found := make([]bool, len(ids))
	for i, id := range ids {
		b.mu.Lock()
		before := len(b.gathered)
		b.mu.Unlock()
		wg.Go(func() {
			done, end, err := b.do(t.Context(), callFor(id))
			if err != nil {
				t.Error(err)
			}
			if !done {
				end()
			}
			found[i] = done
		})
		for gathered := before; gathered == before; {
			b.mu.Lock()
			gathered = len(b.gathered)
			b.mu.Unlock()
		}
	}
	return func() []bool {
		wg.Wait()
		return found
	}
}

func TestBatcher_sendsTogetherWhatGathered(t *testing.T) {
	t.Parallel()
	sent := make(chan []int64, 10)
	b := &batcher{background: startBackground(t), slow: time.Hour, late: func(*call) {}, send: func(_ context.Context, batch []*call) (holder.Instant, error) {
		var ids []int64
		for _, c := range batch {
			c.answered = c.token.ID != 3 // nothing is known of one: it is sent alone after all
			ids = append(ids, c.token.ID)
		}
		sent <- ids
		return holder.Instant{}, nil
	}}
	end := busy(t, b)
	answers := gather(t, b, 1, 2, 3, 2, 4, 5, 6, 7, 8)
	end()
	if ids := <-sent; len(ids) != 8 || ids[1] != 2 || ids[3] != 4 {
		t.Errorf("sent together: %v, want each key once", ids)
	}
	if got := answers(); got[0] != true || got[2] != false {
		t.Errorf("answered in company: %v", got)
	}
}

func TestBatcher_closeFailsWhatGathered(t *testing.T) {
	t.Parallel()
	b := &batcher{background: startBackground(t), slow: time.Hour, late: func(*call) {}, send: func(context.Context, []*call) (holder.Instant, error) {
		t.Error("it is sent")
		return holder.Instant{}, nil
	}}
	_ = busy(t, b)
	failed := make(chan error)
	go func() {
		_, _, err := b.do(t.Context(), callFor(1))
		failed <- err
	}()
	for gathered := 0; gathered == 0; {
		b.mu.Lock()
		gathered = len(b.gathered)
		b.mu.Unlock()
	}
	b.close()
	if err := <-failed; !errors.Is(err, ErrClosed) {
		t.Errorf("who has gathered: %v", err)
	}
	if done, end, err := b.do(t.Context(), callFor(2)); done || end == nil || err != nil {
		t.Errorf("who comes later does not go alone: %v, %v", done, err)
	}
}

func TestBatcher_theAnswerToWhoLeftIsLate(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}), make(chan struct{})
	late := make(chan int64, 1)
	b := &batcher{background: startBackground(t), slow: time.Hour, send: func(_ context.Context, batch []*call) (holder.Instant, error) {
		close(began)
		<-release
		for _, c := range batch {
			c.answered, c.answer.number = true, c.token.ID
		}
		return holder.Now(), nil
	}}
	b.late = func(c *call) { late <- c.answer.number }
	end := busy(t, b)
	answers := gather(t, b, 1, 2, 3, 4, 5, 6, 7)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, _, err := b.do(ctx, callFor(8))
		left <- err
	}()
	for gathered := 0; gathered < minGathered; {
		b.mu.Lock()
		gathered = len(b.gathered)
		b.mu.Unlock()
	}
	end()
	<-began // the gathered calls are on their way
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who left: %v", err)
	}
	close(release)
	if n := <-late; n != 8 {
		t.Errorf("late is the answer %d", n)
	}
	_ = answers()
}

// Calls that are gathered after slow statements do not wait for their end, whether they came before the statements were slow or after.
func TestBatcher_slowStatementsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	b := &batcher{background: startBackground(t), slow: 50 * time.Millisecond, late: func(*call) {}, send: func(_ context.Context, batch []*call) (holder.Instant, error) {
		for _, c := range batch {
			c.answered = true
		}
		return holder.Instant{}, nil
	}}
	for range 2 {
		end := busy(t, b)
		began := time.Now()
		var all sync.WaitGroup
		for id := range int64(2 * minGathered) {
			all.Go(func() {
				if done, end, err := b.do(t.Context(), callFor(id)); err != nil {
					t.Error(err)
				} else if !done {
					end()
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took < 20*time.Millisecond {
			t.Errorf("gathered calls waited for %s", took)
		}
		for range maxRunning {
			end() // these calls have left already
		}
		b.mu.Lock()
		if len(b.running) > 0 || len(b.gathered) > 0 {
			t.Errorf("%d are running, %d gathered", len(b.running), len(b.gathered))
		}
		b.mu.Unlock()
	}
}

// A call that is sent at once sets no timer: batching only costs something if there is something to batch.
//
//nolint:paralleltest // allocations can only be counted while nobody else allocates
func TestBatcher_aloneSetsNoTimer(t *testing.T) {
	b := &batcher{background: startBackground(t), slow: time.Hour, late: func(*call) {}, send: func(context.Context, []*call) (holder.Instant, error) {
		t.Error("it is sent together")
		return holder.Instant{}, nil
	}}
	if n := testing.AllocsPerRun(100, func() {
		_, end, _ := b.do(context.Background(), &call{})
		end()
		if b.watching {
			t.Error("a timer is set")
		}
	}); n > 3 {
		t.Errorf("%v allocations", n)
	}
}
