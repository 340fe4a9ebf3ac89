package gormlock

import (
	"context"
	"errors"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/lockkey"
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
	return pluginOption(func(p *Plugin) { p.observer = observe.Contain(o) })
}

// tell hands e to the observer, if there is one.
func (p *Plugin) tell(ctx context.Context, e observe.Event) {
	if p == nil || p.observer == nil {
		return
	}
	e.Source = "gormlock"
	p.observer.Observe(ctx, e)
}

// began is now, if anybody wants to know how long something takes.
func (p *Plugin) began() time.Time {
	if p == nil || p.observer == nil {
		return time.Time{}
	}
	return time.Now()
}

// tellLocks says what became of a request that began to wait at this time. Locks that were granted are told of again
// when the transaction of j ends.
func (p *Plugin) tellLocks(ctx context.Context, request *advisory.Request, began time.Time, j *journal, err error) {
	if p == nil || p.observer == nil || request == nil {
		return
	}
	if err != nil {
		if kind, ok := refusal(ctx, err); ok {
			p.tell(ctx, observe.Event{Kind: kind, Key: request.String(), Wait: time.Since(began), Err: err})
		}
		return
	}
	granted := time.Now()
	request.Each(func(key lockkey.Key, shared bool) {
		number := numberOf(key)
		e := observe.Event{Kind: observe.Acquired, Key: key.String(), Space: number.Space, ID: number.ID, Mode: lockMode(shared), Wait: granted.Sub(began)}
		p.tell(ctx, e)
		j.hold(heldLock{plugin: p, ctx: ctx, key: e.Key, mode: e.Mode, since: granted})
	})
}

// refusal is what the error of a lock is to an observer, if it is that of a lock at all.
func refusal(ctx context.Context, err error) (observe.Kind, bool) {
	switch {
	case errors.Is(err, ErrNotAcquired):
		return observe.NotAcquired, true
	case errors.Is(err, ErrLockTimeout), ctx.Err() != nil:
		return observe.TimedOut, true
	}
	return 0, false
}

func lockMode(shared bool) string {
	if shared {
		return "shared"
	}
	return "exclusive"
}

// heldLock is an advisory lock that an observer was told of.
type heldLock struct {
	plugin    *Plugin
	ctx       context.Context
	key, mode string
	since     time.Time
}

// hold keeps a lock to be told of when it ends; one that is held already ends only once. A nil journal keeps nothing.
func (j *journal) hold(lock heldLock) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, other := range j.held {
		if other.key == lock.key && other.mode == lock.mode {
			return
		}
	}
	j.held = append(j.held, lock)
}

// released says that locks have ended.
func released(locks []heldLock) {
	for _, l := range locks {
		l.plugin.tell(l.ctx, observe.Event{Kind: observe.Released, Key: l.key, Mode: l.mode, Held: time.Since(l.since)})
	}
}

// tell says what became of a query under a row lock.
func (l RowLockClause) tell(ctx context.Context, p *Plugin, table string, rows int64, err error) {
	if p == nil || p.observer == nil {
		return
	}
	e := observe.Event{Kind: observe.Acquired, Table: table, Mode: strings.ToLower(l.strength.String()), Wait: time.Since(l.began), Rows: rows, Err: err}
	if err != nil {
		kind, ok := refusal(ctx, err)
		if !ok {
			return
		}
		e.Kind, e.Rows = kind, 0
	}
	p.tell(ctx, e)
}

// tellClaim says how many rows were claimed, also where reading them failed afterwards.
func (p *Plugin) tellClaim(query *gorm.DB, began time.Time) {
	if p.observer == nil || query.Error != nil && query.RowsAffected <= 0 {
		return
	}
	p.tell(query.Statement.Context, observe.Event{Kind: observe.Claimed, Table: tableName(query.Statement), Rows: query.RowsAffected, Wait: time.Since(began)})
}

// tellRefused says for which rows a write was refused.
func (p *Plugin) tellRefused(ctx context.Context, err error) {
	if p == nil || p.observer == nil || err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, each := range joined.Unwrap() {
			p.tellRefused(ctx, each)
		}
		return
	}
	if fenced := (*FencedError)(nil); errors.As(err, &fenced) {
		e := observe.Event{Kind: observe.Fenced, Table: fenced.Table, Mode: fenced.Op, Key: fenced.Token.Name, Token: fenced.Token.Number, Err: err}
		p.tell(ctx, e)
	}
	if stale := (*StaleError)(nil); errors.As(err, &stale) {
		p.tell(ctx, observe.Event{Kind: observe.Stale, Table: stale.Table, Key: stale.row(), Mode: stale.Op, Err: err})
	}
}
