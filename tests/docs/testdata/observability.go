package observability

import (
	"log/slog"
	"net/http"

	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
)

var (
	mux        *http.ServeMux
	logger     *slog.Logger
	invoiceKey lockkey.Key
	one, other observe.Observer
)

func onlyAdmins(next http.Handler) http.Handler { return next }

func isAdmin(*http.Request) bool { return false }
