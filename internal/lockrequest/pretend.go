package lockrequest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gormlock/gormlock/internal/cause"
	"github.com/gormlock/gormlock/internal/lockid"
	"github.com/gormlock/gormlock/internal/pretend"
)

// Pretend takes the locks in memory, all or none, and returns a function that frees them. The errors are those of [Request.Acquire].
func (r *Request) Pretend(ctx context.Context, locks *pretend.Locks, owner any) (free func(), err error) {
	bounded := ctx
	if r.timeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, r.timeout)
		defer cancel()
	}
	taken := 0
	free = func() {
		for _, l := range r.locks[:taken] {
			locks.Release(owner, number(l), l.shared)
		}
	}
	for _, l := range r.locks {
		if err := locks.Acquire(bounded, owner, number(l), l.shared, !r.try); err != nil {
			free()
			return nil, r.pretendedVerdict(ctx, l, err)
		}
		taken++
	}
	return free, nil
}

// HeldIn reports whether the owner has all of the locks.
func (r *Request) HeldIn(locks *pretend.Locks, owner any) bool {
	return !slices.ContainsFunc(r.locks, func(l lock) bool { return !locks.Holds(owner, number(l), l.shared) })
}

func number(l lock) lockid.ID {
	id, _ := lockid.Of(l.key) // add keeps single locks only
	return id
}

// pretendedVerdict returns the error that the caller gets if the lock l was not granted because of err.
func (r *Request) pretendedVerdict(ctx context.Context, l lock, err error) error {
	switch {
	case errors.Is(err, pretend.ErrHeld):
		return &lockError{state: ErrNotAcquired, what: l.key.String()}
	case ctx.Err() != nil:
		return cause.Add(ctx, &lockError{state: ctx.Err(), what: r.String()})
	case errors.Is(err, context.DeadlineExceeded):
		return &lockError{state: ErrLockTimeout, what: r.String(), detail: fmt.Sprintf("after %s", r.timeout)}
	}
	return &lockError{state: err, what: r.String()}
}

// Refused is the error of a request in a transaction that executes nothing any more; err is the driver's.
func (r *Request) Refused(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return cause.Add(ctx, &lockError{state: ctx.Err(), cause: err, what: r.String()})
	}
	return &lockError{state: err, what: r.String()}
}
