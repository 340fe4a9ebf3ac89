package keynames

import (
	"log/slog"

	"github.com/gormlock/gormlock/observe"
	"github.com/gormlock/gormlock/tests/docs/runner"
)

var (
	logger = slog.New(slog.DiscardHandler)
	other  = observe.Slog(logger)
)

func setup(world *runner.World) {
	db = world.Plain() // the snippets install the plugin
}
