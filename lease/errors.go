package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/cause"
	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/lockkey"
)

var (
	// ErrNotAcquired says that [Manager.TryAcquire] found the lease taken. The caller does not hold it.
	ErrNotAcquired = advisory.ErrNotAcquired
	// ErrLockTimeout says that a lease was not granted within [Timeout]. The caller does not hold it.
	ErrLockTimeout = advisory.ErrLockTimeout
	// ErrLost says that a lease that was held may be held by somebody else by now. The
	// error that wraps it says why.
	ErrLost = holder.ErrLost
	// ErrReleased says that the lease was already released.
	ErrReleased = holder.ErrReleased
	// ErrClosed says that the manager was closed.
	ErrClosed = holder.ErrClosed
	// ErrReentrant says that ctx already belongs to a holder of this lease: it would wait
	// for itself.
	ErrReentrant = holder.ErrReentrant
	// ErrStandby says that the server is a standby, where nothing can be written.
	ErrStandby = advisory.ErrStandby
	// ErrReadOnly says that the server or the session accepts no writes: a standby,
	// or default_transaction_read_only.
	ErrReadOnly = errors.New("gormlock: the server takes no writes")
	// ErrTable says that the table of the leases or of the tokens cannot be used: it is
	// missing, or lacks something that the error names.
	ErrTable = errors.New("gormlock: unusable table")
	// ErrOption says that an option, a duration or a name has a value that makes no sense.
	ErrOption = advisory.ErrOption
)

// leaseError is the outcome of a call for one lease: errors.Is finds the state and the cause, which may be nil.
func leaseError(key lockkey.Key, state, cause error, detail string) error {
	return &holder.Error{Thing: "lease", Key: key, State: state, Cause: cause, Detail: detail}
}

// unanswered explains the error of a statement that was ended by its own bound, and not by a ctx of the caller.
func unanswered(ctx, asking context.Context, within time.Duration, err error) error {
	if err == nil || ended(asking) == nil || ended(ctx) != nil {
		return err
	}
	return fmt.Errorf("no answer from the database within %s: %w", within, err)
}

// isRetry reports whether err says that a transaction conflicted with another one.
func isRetry(err error) bool {
	return sqlstate.Is(err, sqlstate.SerializationFailure, sqlstate.DeadlockDetected)
}

// explain adds the cure to server errors that have one, and the package prefix to the text.
func explain(err error) error {
	switch sqlstate.Of(err) {
	case sqlstate.ReadOnlySQLTransaction:
		return fmt.Errorf("%w: %w", cause.Because(ErrReadOnly), err)
	case sqlstate.UndefinedTable, sqlstate.UndefinedColumn, sqlstate.InsufficientPrivilege, sqlstate.InvalidColumnReference:
		return fmt.Errorf("%w: %w (lease.Migrate creates the tables, given the options of lease.New, which checks them)", cause.Because(ErrTable), err)
	case sqlstate.InvalidSQLStatementName, sqlstate.DuplicatePreparedStatement, sqlstate.ProtocolViolation:
		if sqlstate.EndsSession(err) { // the pooler has no server
			return err
		}
		return fmt.Errorf("%w (behind a pooler in transaction mode a driver must keep no prepared statements: with pgx, default_query_exec_mode=exec)", err)
	}
	return err
}

// passes reports whether the cause of err ends by itself: the server is down, starting, demoted, lost to its pooler, or out of connections, memory or space; a
// transaction conflicted with another one; or a statement or a session took longer than the settings of the role allow.
func passes(err error) bool {
	switch sqlstate.Of(err) {
	case "":
	case sqlstate.ReadOnlySQLTransaction, sqlstate.SerializationFailure, sqlstate.DeadlockDetected, sqlstate.QueryCanceled, sqlstate.LockNotAvailable:
		return true
	default:
		return sqlstate.EndsSession(err) || sqlstate.InClass(err, sqlstate.ClassResources)
	}
	return sqlstate.IsOfTheNetwork(err)
}
