package observe_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/gormlock/gormlock/observe"
)

// losses counts what was lost.
type losses struct{ n int }

// Observe is called for each event.
func (l *losses) Observe(_ context.Context, e observe.Event) {
	if e.Kind == observe.Lost {
		l.n++
	}
}

// logger writes lines without the time.
func logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// An observer of your own: gormlock.WithObserver, and Observer of sessionlock, lease and work take it.
func ExampleObserver() {
	seen := &losses{}
	var o observe.Observer = seen
	o.Observe(context.Background(), observe.Event{Kind: observe.Lost, Source: "lease", Key: "report/7"}) // as lease does
	fmt.Println("lost:", seen.n)
	// Output: lost: 1
}

// Each event is a line of the log, with a level by what it means.
func ExampleSlog() {
	o := observe.Slog(logger())
	o.Observe(context.Background(), observe.Event{Kind: observe.Stale, Table: "accounts"})
	o.Observe(context.Background(), observe.Event{Kind: observe.Lost, Source: "lease", Key: "report/7"})
	// Output:
	// level=INFO msg="gormlock: stale" table=accounts
	// level=WARN msg="gormlock: lost" source=lease key=report/7
}

// Several observers are told of everything, in their order.
func ExampleMulti() {
	metrics := &losses{}
	o := observe.Multi(metrics, observe.Slog(logger()))
	o.Observe(context.Background(), observe.Event{Kind: observe.Lost, Source: "sessionlock", Key: "cache"})
	fmt.Println("lost:", metrics.n)
	// Output:
	// level=WARN msg="gormlock: lost" source=sessionlock key=cache
	// lost: 1
}

// Nobody waits for an observer that takes its time, such as one that asks a network.
func ExampleNewQueue() {
	slow := &losses{}
	queue := observe.NewQueue(slow, 1000)
	queue.Observe(context.Background(), observe.Event{Kind: observe.Lost})

	if err := queue.Drain(context.Background()); err != nil { // at the end of the program
		fmt.Println(err)
		return
	}
	fmt.Println("lost:", slow.n, "dropped:", queue.Dropped())
	// Output: lost: 1 dropped: 0
}
