package observability

import (
	"log/slog"
	"net/http"

	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
	"github.com/gormlock/gormlock/tests/docs/runner"
)

var (
	mux        *http.ServeMux
	logger     = slog.New(slog.DiscardHandler)
	invoiceKey = lockkey.Of("invoice", 42)
	one, other = observe.Slog(logger), observe.Slog(logger)
)

func onlyAdmins(next http.Handler) http.Handler { return next }

func isAdmin(*http.Request) bool { return false }

func setup(world *runner.World) {
	mux = http.NewServeMux()
	db = world.Plain() // the snippets install the plugin
}
