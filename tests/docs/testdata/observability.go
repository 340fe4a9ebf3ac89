package observability

import (
	"log/slog"
	"net/http"

	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
	"github.com/gormlock/gormlock/tests/docs/runner"
	"github.com/gormlock/gormlock/work"
)

var (
	mux        *http.ServeMux
	logger     = slog.New(slog.DiscardHandler)
	invoiceKey = lockkey.Of("invoice", 42)
	one, other = observe.Slog(logger), observe.Slog(logger)
)

func onlyAdmins(next http.Handler) http.Handler { return next }

type Mail struct{ work.Job }

func isAdmin(*http.Request) bool { return false }

func setup(world *runner.World) {
	mux = http.NewServeMux()
	runner.Check(work.Migrate(db, &Mail{}))
	db = world.Plain() // the snippets install the plugin
}
