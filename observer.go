package gormlock

import (
	"context"
	"errors"

	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/observe"
)

// WithObserver tells o what becomes of locks and of guarded writes, as it happens:
//
//   - of advisory locks [observe.Acquired] with the wait, NotAcquired, TimedOut, and Released with the time they were
//     held, when the transaction or the savepoint they were taken in has ended;
//   - of row locks the same, by table and without Released; the wait is that of the query, its own work included. Of a
//     query that is read by Rows nothing is told;
//   - [observe.Claimed] with the number of rows, of an empty claim too;
//   - [observe.Stale] and [observe.Fenced] for each row that a write was refused for;
//   - [observe.Retried] before each run of [Transaction] but the first.
//
// Of a lock in a transaction whose end gormlock does not see (a *sql.Tx the application began itself, db.Begin with
// [PlainTransactions]) Released is not told. A panic in o ends there, and nobody waits for it longer than 10 ms, see
// [observe.Contain]. Default: nobody is told, and nothing is spent.
func WithObserver(o observe.Observer) Option {
	return pluginOption(func(p *Plugin) { p.settings.Observer = observe.Contain(o) })
}

// tellRefused says for which rows a write was refused.
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

// WithKeyNames keeps the names of advisory locks in the table gormlock_key_name, which inspect.Migrate creates, so that
// package inspect can say which lock a number in pg_locks is. Only keys that are waited for or held for more than a
// second get a row, in batches, written in the background on a connection of the database's own pool; a row that nobody
// needed for a day is deleted. No statement waits for it or fails by it: what goes wrong is said once by GORM's logger,
// as an error, and tried again. While all connections of the pool wait for locks, names are not written. [Plugin.Close]
// ends it. Default: names stay in the program.
func WithKeyNames() Option {
	return pluginOption(func(p *Plugin) { p.settings.KeyNames = &install.KeyNames{} })
}
