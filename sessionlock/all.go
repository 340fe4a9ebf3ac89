package sessionlock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/lockkey"
)

// Locks are locks that were acquired together, in the order in which every call
// acquires them.
type Locks []*Lock

// AcquireAll acquires the locks of all keys, or none. Every AcquireAll acquires its locks
// in the same order, so no two of them wait for each other. Several calls of Acquire can
// deadlock, and that is not detected. Free locks cost one round trip, however many. A key
// given twice is acquired once, and both locks of a [lockkey.Renamed] key. If some are
// lost while it waits for others, all are acquired anew.
func (m *Manager) AcquireAll(ctx context.Context, keys ...lockkey.Key) (Locks, error) {
	requests, err := inOrder(keys)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for {
		locks, err := m.takeAll(ctx, requests)
		if err != nil {
			return nil, err
		}
		lost := locks.lost()
		if lost == nil {
			for i, l := range locks {
				m.reporter.acquired(ctx, &requests[i], l, began, nil)
			}
			return locks, nil
		}
		if err := locks.discard(ctx); err != nil || errors.Is(lost, ErrClosed) {
			return nil, errors.Join(lost, err)
		}
	}
}

// lost returns the error of the first lock that is no longer held.
func (ls Locks) lost() error {
	for _, l := range ls {
		if err := l.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manager) takeAll(ctx context.Context, requests []request) (Locks, error) {
	if err := ctx.Err(); err != nil && len(requests) > 0 {
		return nil, lockError(requests[0].key, err, causeOf(ctx), "not asked for")
	}
	var taken Locks
	for len(requests) > 0 {
		locks, err := m.takeFree(ctx, requests)
		taken = append(taken, locks...)
		requests = requests[len(locks):]
		if err == nil {
			continue
		}
		if errors.Is(err, ErrNotAcquired) {
			began := time.Now()
			var l *Lock
			if l, err = m.takeOne(ctx, &requests[0]); err == nil {
				taken = append(taken, l)
				requests = requests[1:]
				continue
			}
			m.reporter.acquired(ctx, &requests[0], nil, began, err)
		}
		return nil, errors.Join(err, taken.discard(ctx))
	}
	return taken, nil
}

func inOrder(keys []lockkey.Key) ([]request, error) {
	requests := make([]request, 0, len(keys))
	for _, key := range keys {
		for _, k := range key.Keys() {
			r, err := newRequest(k, nil)
			if err != nil {
				return nil, err
			}
			requests = append(requests, r)
		}
	}
	slices.SortFunc(requests, func(a, b request) int { return lockkey.Compare(a.key, b.key) })
	return slices.CompactFunc(requests, func(a, b request) bool { return a.id == b.id }), nil
}

// takeFree tries to take all locks at once. It keeps the locks before the first one that was not free, and returns the error of that one.
func (m *Manager) takeFree(ctx context.Context, requests []request) (Locks, error) {
	waiters := make([]*waiter, len(requests))
	for i, r := range requests {
		if holder.Holds(ctx, m, r.id) {
			return nil, lockError(r.key, ErrReentrant, nil, "")
		}
		r.try = true
		waiters[i] = newWaiter(&r)
		waiters[i].equip(m)
	}
	for _, w := range waiters {
		m.core.inbox.put(w)
	}
	var kept, back Locks
	var first error
	for i, w := range waiters {
		l, err := (*Lock)(nil), m.core.await(ctx, w)
		if err != nil {
			err = m.unanswered(ctx, &requests[i], err, &m.core.conns.dialError)
		} else {
			l, err = w.lock, w.err
			w.reuse()
		}
		switch {
		case err == nil && first == nil:
			kept = append(kept, l)
		case err == nil:
			back = append(back, l)
		case first == nil:
			first = err
		}
	}
	return kept, errors.Join(first, back.discard(ctx))
}

// discard releases locks that the caller never got. A lock that was lost counts as released.
func (ls Locks) discard(ctx context.Context) error {
	if len(ls) == 0 {
		return nil
	}
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), ls[0].m.dialer.Silence())
	defer cancel()
	for _, err := range ls.release(detached) {
		if err != nil && !errors.Is(err, ErrLost) {
			return err
		}
	}
	return nil
}

// Release releases all locks, in one round trip. The error joins the errors that
// [Lock.Release] would have returned; the other locks are released.
func (ls Locks) Release(ctx context.Context) error {
	errs := ls.release(ctx)
	for i, l := range ls {
		l.m.reporter.released(ctx, l, errs[i])
	}
	return errors.Join(errs...)
}

// release returns an error or nil for each lock.
func (ls Locks) release(ctx context.Context) []error {
	waiters := make([]*waiter, len(ls))
	for i, l := range ls {
		waiters[i] = newReleaser(l)
		l.m.core.inbox.put(waiters[i])
	}
	errs := make([]error, len(ls))
	for i, l := range ls {
		errs[i] = l.releaseError(waiters[i], l.m.core.await(ctx, waiters[i]))
	}
	return errs
}
