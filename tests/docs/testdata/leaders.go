package leaders

import (
	"context"
	"time"

	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/tests/docs/runner"
)

var (
	berlin = time.FixedZone("CET", 3600)
	group  goroutines
)

// goroutines is an errgroup.Group, of which the snippets wait for nothing.
type goroutines struct{}

func (goroutines) Go(f func() error) { go func() { _ = f() }() }

func follow(ctx context.Context) error { return ctx.Err() }

func pay(ctx context.Context) error { return ctx.Err() }

func send(ctx context.Context, _ time.Time) error { return ctx.Err() }

func setup(*runner.World) { runner.Check(lease.Migrate(ctx, pool)) }
