package rowlock

import (
	"context"
	"strings"
	"time"

	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/observe"
)

// Tell reports the outcome of a query under a row lock to the observer.
func (l Lock) Tell(ctx context.Context, p *install.Settings, table string, rows int64, err error) {
	if !p.Observed() {
		return
	}
	e := observe.Event{Kind: observe.Acquired, Table: table, Mode: strings.ToLower(l.Strength.String()), Wait: time.Since(l.Began), Rows: rows, Err: err}
	if err != nil {
		kind, ok := install.Refusal(ctx, err)
		if !ok {
			return
		}
		e.Kind, e.Rows = kind, 0
	}
	p.Tell(ctx, e)
}
