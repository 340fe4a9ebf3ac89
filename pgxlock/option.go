package pgxlock

import (
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/lockkey"
)

// TxOption changes what [Transaction] begins and how often it tries. The set is closed; an option holds no state, so one
// value can serve many calls.
type TxOption interface {
	apply(*call) error
}

type txOption func(*call) error

func (o txOption) apply(c *call) error { return o(c) }

// Locking begins the transaction with the advisory lock held. Any number of them, and the BEGIN, are one round trip. At
// REPEATABLE READ and above the lock is held before the snapshot is taken. Default: no lock.
func Locking(key lockkey.Key, opts ...advisory.Option) TxOption {
	return txOption(func(c *call) error {
		request, err := lockrequest.New([]lockkey.Key{key}, opts...)
		if err != nil {
			return err
		}
		if c.request != nil {
			request = c.request.And(request)
		}
		c.request = request
		return nil
	})
}

// Attempts runs the whole transaction up to n times, as long as another run can cure its error: a serialization failure
// (40001) or a deadlock (40P01). A lock that was not granted in time, or that [advisory.Try] found taken, is an answer and
// is not repeated. The pauses between runs are random and grow, up to two seconds or a hundred times the length of a run.
// Default: once.
func Attempts(n int) TxOption {
	return txOption(func(c *call) error {
		if n < 1 {
			return fmt.Errorf("%w: Attempts(%d) must be at least 1", advisory.ErrOption, n)
		}
		c.attempts = n
		return nil
	})
}

// Isolation begins the transaction at this level. Default: the database's.
func Isolation(level pgx.TxIsoLevel) TxOption {
	return txOption(func(c *call) error {
		switch level {
		case pgx.Serializable, pgx.RepeatableRead, pgx.ReadCommitted, pgx.ReadUncommitted:
			c.level = level
			return nil
		}
		return fmt.Errorf("%w: Isolation(%q) is not a level of pgx", advisory.ErrOption, level)
	})
}
