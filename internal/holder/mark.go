package holder

import "context"

// Held is a lock that was acquired: Err is nil while it is held.
type Held interface{ Err() error }

// mark is an element of a list of what the holder of a context has.
type mark struct {
	manager any
	place   Place
	lock    Held
	outer   *mark
}

type markKey struct{}

func marksOf(ctx context.Context) *mark {
	m, _ := ctx.Value(markKey{}).(*mark)
	return m
}

// Mark is ctx as the context of a holder of lock, which manager gave and which is at all these places.
func Mark(ctx context.Context, manager any, lock Held, places ...Place) context.Context {
	marks := marksOf(ctx)
	for _, at := range places {
		marks = &mark{manager, at, lock, marks}
	}
	return context.WithValue(ctx, markKey{}, marks)
}

// Holds reports whether ctx belongs to a holder of a lock that manager gave at this place. A lock that has ended does not count.
func Holds(ctx context.Context, manager any, at Place) bool {
	for m := marksOf(ctx); m != nil; m = m.outer {
		if m.manager == manager && m.place == at && m.lock.Err() == nil {
			return true
		}
	}
	return false
}
