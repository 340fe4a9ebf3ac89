package gormlock

import (
	"context"
	"errors"

	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/observe"
)

// WithObserver reports events of locks and of guarded writes to o:
//
//   - for advisory locks [observe.Acquired] with the wait, NotAcquired, TimedOut, and Released with the time they were
//     held, when the transaction or savepoint in which they were taken has ended;
//   - for row locks the same, by table and without Released. The wait includes the time of the query. A query whose
//     rows are read by Rows is not reported;
//   - [observe.Claimed] with the number of rows, even if it is 0;
//   - [observe.Stale] and [observe.Fenced] for each row whose write was refused;
//   - [observe.Retried] before each run of [Transaction] except the first.
//
// Released is not reported for a lock in a transaction whose end gormlock does not see (a *sql.Tx that the application
// began itself, db.Begin with [PlainTransactions]). A panic in o is caught, and nobody waits for o longer than 10 ms: see
// [observe.Contain]. Default: no observer, and no cost.
func WithObserver(o observe.Observer) Option {
	return pluginOption(func(p *Plugin) { p.err = errors.Join(p.err, p.settings.Observe(o)) })
}

// tellRefused reports the rows for which a write was refused.
func tellRefused(ctx context.Context, p *install.Settings, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, each := range joined.Unwrap() {
			tellRefused(ctx, p, each)
		}
		return
	}
	if fenced := (*FencedError)(nil); errors.As(err, &fenced) {
		e := observe.Event{Kind: observe.Fenced, Table: fenced.Table, Mode: fenced.Op, Key: fenced.Token.Name, Token: fenced.Token.Number, Err: err}
		p.Tell(ctx, e)
	}
	if stale := (*StaleError)(nil); errors.As(err, &stale) {
		p.Tell(ctx, observe.Event{Kind: observe.Stale, Table: stale.Table, Key: stale.row(), Mode: stale.Op, Err: err})
	}
	if conflict := (*ConflictError)(nil); errors.As(err, &conflict) {
		p.Tell(ctx, observe.Event{Kind: observe.Stale, Table: conflict.table, Key: conflict.row, Mode: "save", Err: err})
	}
}

// WithKeyNames keeps the names of advisory locks in the table gormlock_key_name, which inspect.Migrate creates. With it
// package inspect can name the locks in pg_locks. A key gets a row if somebody waits for it, or holds it for more than a
// second. Rows are written in batches, in the background, on a connection of the database's own pool. A row that nobody
// needed for a day is deleted. No statement waits for this or fails because of it: GORM's logger logs an error once, and
// it is tried again. While all connections of the pool wait for locks, names are not written. [Plugin.Close] ends it.
// Default: names stay in the program.
func WithKeyNames() Option {
	return pluginOption(func(p *Plugin) { p.settings.KeyNames = &install.KeyNames{} })
}
