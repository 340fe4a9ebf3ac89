package metrics

import (
	"context"

	"github.com/gormlock/gormlock/tests/docs/runner"
	"github.com/gormlock/gormlock/work"
)

type Mail struct{ work.Job }

func handle(context.Context, *Mail) error { return nil }

func setup(world *runner.World) {
	runner.Check(work.Migrate(db, &Mail{}))
	db = world.Plain() // the snippets install the plugin
}
