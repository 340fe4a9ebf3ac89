package journal

import (
	"context"
	"time"

	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
)

// TellLocks reports the outcome of a request to the observer. began is when the wait began. Granted locks are reported
// again when the transaction of j ends.
func TellLocks(ctx context.Context, p *install.Settings, request *lockrequest.Request, began time.Time, j *journal, err error) {
	if !p.Observed() || request == nil {
		return
	}
	if err != nil {
		if kind, ok := install.Refusal(ctx, err); ok {
			p.Tell(ctx, observe.Event{Kind: kind, Key: request.String(), Wait: time.Since(began), Err: err})
		}
		return
	}
	granted := time.Now()
	request.Each(func(key lockkey.Key, shared bool) {
		number := install.Number(key)
		e := observe.Event{Kind: observe.Acquired, Key: key.String(), Space: number.Space, ID: number.ID, Mode: lockMode(shared), Wait: granted.Sub(began)}
		p.Tell(ctx, e)
		j.hold(heldLock{plugin: p, ctx: ctx, key: e.Key, mode: e.Mode, since: granted})
	})
}

func lockMode(shared bool) string {
	if shared {
		return "shared"
	}
	return "exclusive"
}

// heldLock is an advisory lock whose acquisition was reported to an observer.
type heldLock struct {
	plugin    *install.Settings
	ctx       context.Context
	key, mode string
	since     time.Time
}

// hold remembers a lock so that its end is reported, once even if it was taken twice. A nil journal remembers
// nothing.
func (j *journal) hold(lock heldLock) {
	if j == nil {
		return
	}
	j.Mu.Lock()
	defer j.Mu.Unlock()
	for _, other := range j.past.held {
		if other.key == lock.key && other.mode == lock.mode {
			return
		}
	}
	j.past.held = append(j.past.held, lock)
}

// Released reports to the observer that locks have ended.
func Released(locks []heldLock) {
	for _, l := range locks {
		l.plugin.Tell(l.ctx, observe.Event{Kind: observe.Released, Key: l.key, Mode: l.mode, Held: time.Since(l.since)})
	}
}
