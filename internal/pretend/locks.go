package pretend

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/gormlock/gormlock/internal/lockid"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

// ErrHeld says that the lock is not free, and that the caller does not wait.
var ErrHeld = errors.New("gormlock: the pretended lock is held")

// Locks are the locks of one database. The zero value is ready to use.
type Locks struct {
	mu    sync.Mutex
	locks map[lockid.ID]*lock
}

// lock is a lock that is held or waited for.
type lock struct {
	holders map[any]*grants
	queue   []*wait
}

// grants counts how often an owner was granted a lock.
type grants struct{ exclusive, shared int }

// wait is a call without an answer so far.
type wait struct {
	owner   any
	shared  bool
	granted chan struct{} // closed when the lock is granted
}

// Acquire takes the lock for the owner. If it is not free, Acquire waits until ctx ends, and returns its error; without wait it returns [ErrHeld].
// An owner that would wait for itself, through others, gets the error of a deadlock. After an error the owner holds what it held before.
func (l *Locks) Acquire(ctx context.Context, owner any, id lockid.ID, shared, wait bool) error {
	w, err := l.ask(owner, id, shared, wait)
	if err != nil {
		return err
	}
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
		return l.giveUp(w, id, ctx.Err())
	}
}

func (l *Locks) ask(owner any, id lockid.ID, shared, mayWait bool) (*wait, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.locks[id]
	if k == nil {
		k = &lock{holders: map[any]*grants{}}
	}
	w := &wait{owner: owner, shared: shared, granted: make(chan struct{})}
	ahead := k.queue
	if k.holders[owner] != nil {
		ahead = nil // waiters before a holder wait for it
	}
	if len(k.blockers(w, ahead)) == 0 {
		if l.locks == nil {
			l.locks = map[lockid.ID]*lock{}
		}
		l.locks[id] = k
		k.grant(w)
		return w, nil
	}
	if !mayWait {
		return nil, ErrHeld
	}
	k.queue = slices.Insert(k.queue, len(ahead), w)
	if l.waitsForItself(owner, owner, map[any]bool{}) {
		l.leave(w, id)
		return nil, deadlock{}
	}
	return w, nil
}

// giveUp ends a wait, unless the lock was granted meanwhile.
func (l *Locks) giveUp(w *wait, id lockid.ID, because error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	default:
		l.leave(w, id)
		return because
	}
}

func (l *Locks) leave(w *wait, id lockid.ID) {
	k := l.locks[id]
	k.queue = slices.DeleteFunc(k.queue, func(other *wait) bool { return other == w })
	l.advance(id, k)
}

// Holds reports whether the owner has the lock, or a stronger one if it asks for a shared one.
func (l *Locks) Holds(owner any, id lockid.ID, shared bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.locks[id]
	return k != nil && k.holders[owner] != nil && (shared || k.holders[owner].exclusive > 0)
}

// Release takes back one grant.
func (l *Locks) Release(owner any, id lockid.ID, shared bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.locks[id]
	if k == nil || k.holders[owner] == nil {
		return
	}
	g := k.holders[owner]
	if shared {
		g.shared--
	} else {
		g.exclusive--
	}
	if g.shared <= 0 && g.exclusive <= 0 {
		delete(k.holders, owner)
	}
	l.advance(id, k)
}

// advance grants what has become free, in the order of the waiters.
func (l *Locks) advance(id lockid.ID, k *lock) {
	for i := 0; i < len(k.queue); {
		w := k.queue[i]
		if len(k.blockers(w, k.queue[:i])) > 0 {
			i++
			continue
		}
		k.queue = slices.Delete(k.queue, i, i+1)
		k.grant(w)
	}
	if len(k.holders) == 0 && len(k.queue) == 0 {
		delete(l.locks, id)
	}
}

func (k *lock) grant(w *wait) {
	g := k.holders[w.owner]
	if g == nil {
		g = &grants{}
		k.holders[w.owner] = g
	}
	if w.shared {
		g.shared++
	} else {
		g.exclusive++
	}
	close(w.granted)
}

// blockers are the owners that w waits for: those that hold the lock, and those that wait ahead of it.
func (k *lock) blockers(w *wait, ahead []*wait) (owners []any) {
	for owner, g := range k.holders {
		if owner != w.owner && (!w.shared || g.exclusive > 0) {
			owners = append(owners, owner)
		}
	}
	for _, a := range ahead {
		if a.owner != w.owner && (!w.shared || !a.shared) {
			owners = append(owners, a.owner)
		}
	}
	return owners
}

// waitsForItself reports whether an owner waits for itself, through the owners that it waits for.
func (l *Locks) waitsForItself(start, from any, seen map[any]bool) bool {
	seen[from] = true
	for _, k := range l.locks {
		for i, w := range k.queue {
			if w.owner != from {
				continue
			}
			for _, owner := range k.blockers(w, k.queue[:i]) {
				if owner == start || !seen[owner] && l.waitsForItself(start, owner, seen) {
					return true
				}
			}
		}
	}
	return false
}

// deadlock is the error of a wait that would never end, with the server's code for it.
type deadlock struct{}

func (deadlock) Error() string    { return "deadlock detected" }
func (deadlock) SQLState() string { return sqlstate.DeadlockDetected }
