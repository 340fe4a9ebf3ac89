package leaders

import (
	"context"
	"sync"
	"time"

	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/tests/docs/runner"
)

var (
	berlin = time.FixedZone("CET", 3600)
	group  goroutines
)

// goroutines is an errgroup.Group. What a snippet starts ends before the next one begins.
type goroutines struct{ running sync.WaitGroup }

func (g *goroutines) Go(f func() error) { g.running.Go(func() { _ = f() }) }

func follow(ctx context.Context) error { return ctx.Err() }

func pay(ctx context.Context) error { return ctx.Err() }

func send(ctx context.Context, _ time.Time) error { return ctx.Err() }

func setup(world *runner.World) {
	runner.Check(lease.Migrate(ctx, pool))
	running, stop := context.WithCancel(ctx)
	ctx = running
	world.Defer(func() error {
		stop()
		group.running.Wait()
		return nil
	})
}
