package lease

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/lockkey"
)

var (
	// ErrNotAcquired says that [Manager.TryAcquire] found the lease taken. It is not held.
	ErrNotAcquired = advisory.ErrNotAcquired
	// ErrLockTimeout says that a lease was not granted within [Timeout]. It is not held.
	ErrLockTimeout = advisory.ErrLockTimeout
	// ErrLost says that a lease that was held may be held by somebody else by now. The
	// error that wraps it says why.
	ErrLost = errors.New("gormlock: lease lost")
	// ErrReleased says that a lease was given back before.
	ErrReleased = errors.New("gormlock: lease released already")
	// ErrClosed says that the manager was closed.
	ErrClosed = errors.New("gormlock: the lease manager is closed")
	// ErrReentrant says that ctx belongs to a holder of the very lease that is asked for:
	// it would wait for itself.
	ErrReentrant = errors.New("gormlock: held by this context already, it would wait for itself")
	// ErrStandby says that the server is a standby, where nothing can be written.
	ErrStandby = advisory.ErrStandby
	// ErrReadOnly says that the server or the session takes no writes: a standby, or
	// default_transaction_read_only.
	ErrReadOnly = errors.New("gormlock: the server takes no writes")
	// ErrTable says that the table of the leases or that of the tokens cannot be used: it
	// is missing, or lacks something that the error names.
	ErrTable = errors.New("gormlock: unusable table")
	// ErrOption says that the value of an option, a duration or a name means nothing.
	ErrOption = advisory.ErrOption
)

// leaseError is what became of one lease: errors.Is finds the state and the cause.
type leaseError struct {
	key    lockkey.Key
	state  error
	cause  error // why, may be nil
	detail string
}

func (e *leaseError) Error() string {
	text := "gormlock: lease " + e.key.String() + ": " + strings.TrimPrefix(strings.TrimPrefix(e.state.Error(), "gormlock: "), "lease ")
	if e.detail != "" {
		text += ", " + e.detail
	}
	if e.cause != nil {
		text += ": " + strings.TrimPrefix(e.cause.Error(), "gormlock: ")
	}
	return text
}

func (e *leaseError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.state}
	}
	return []error{e.state, e.cause}
}

// explain adds the cure to errors of the server that have one.
func explain(err error) error {
	switch state := sqlState(err); state {
	case "25006":
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	case "42P01", "42703", "42501", "42P10":
		return fmt.Errorf("%w: %w (lease.Migrate creates the tables, given the options of lease.New, which checks them)", ErrTable, err)
	case "26000", "42P05", "08P01":
		return fmt.Errorf("%w (behind a pooler in transaction mode a driver must keep no prepared statements: with pgx, default_query_exec_mode=exec)", err)
	}
	return err
}

// passes reports whether err is of a kind that ends by itself: a server that is down,
// starts, was demoted or is out of connections, or a transaction that met another.
func passes(err error) bool {
	switch state := sqlState(err); state {
	case "":
	case "57P01", "57P02", "57P03", "53300", "25006", "40001", "40P01":
		return true
	default:
		return strings.HasPrefix(state, "08") && state != "08P01"
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// sqlState is the SQLSTATE of err, "" when it has none. It is read by interface, so no
// driver is imported.
func sqlState(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}
