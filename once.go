package gormlock

import (
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/once"
	"github.com/gormlock/gormlock/internal/xact"
)

// ErrOtherRequest says that the key of [Once] was used before, for another request: see [ForRequest]. Nothing was
// executed.
var ErrOtherRequest = fault.ErrOtherRequest

// Once runs fn at most once for a key, in the transaction tx. Every later call with that key returns the result of the
// first. This is what payment services call an idempotency key.
//
//	err := db.Transaction(func(tx *gorm.DB) error {
//		receipt, err := gormlock.Once(tx, "charge/"+idempotencyKey, func(tx *gorm.DB) (Receipt, error) { … })
//		…
//	})
//
// The key, the effect of fn and its result are stored in one transaction, together or not at all. If an open
// transaction has stored the key, a call waits until that transaction ends. Then it returns the result, or runs fn if
// there is none. It waits like any INSERT, bounded by ctx and lock_timeout. To refuse a request while the same one is
// running, take a lock first:
//
//	gormlock.Transaction(db, fn, gormlock.Locking(gormlock.Key("charge", idempotencyKey), gormlock.Try()))
//
// If fn fails or panics, its effect and the key are rolled back to a savepoint, and the next call runs fn again, even
// if the transaction goes on and is committed. A stale write in fn makes it fail, even if fn drops the error.
//
// The result is stored as JSON. The first call returns it as read from that JSON too, so it sees no more than the
// others. It is an error, and the effect is rolled back, if JSON cannot hold the result or keeps nothing of it (all
// fields are unexported), if the JSON cannot be read back, or if it is longer than 1 MiB. If T has changed since, the
// result is read as json.Unmarshal does; if that fails, the error says so and fn is not run.
//
// A struct of a versioned model counts as not read if JSON does not hold all its columns, because its next Save would empty the missing ones. That
// is so with `json:"-"`, with a MarshalJSON that hides a secret, or if T has got fields since. Return only what callers need, or read the row again.
//
// If the transaction is rolled back, the structs in the result count as not read. gormlock cannot change a struct that was returned by value. So
// such a struct has no version if the transaction has stored the key and has written more. Return a pointer instead.
//
// What fn does outside of the database happens again if the commit fails: send the key along to services that accept one.
// fn must not commit or roll back tx. If it changes search_path or role, it must set them back before it returns.
//
// A key is text of 1 to 1024 bytes, shared by all callers of the database: begin it with its purpose and its owner.
// [MigrateOnce] creates the table. Keys stay until [SweepOnce] removes them. At REPEATABLE READ and above, a key that was stored after the snapshot
// is an error for which [IsRetryable] is true. Outside of a transaction the error is [ErrNoTransaction]. After any error the transaction is as usable
// as before, unless ctx has ended or the connection is gone.
func Once[T any](tx *gorm.DB, key string, fn func(tx *gorm.DB) (T, error), opts ...OnceOption) (T, error) {
	var result, none T
	if fn == nil {
		return none, fmt.Errorf("%w: a nil function", fault.ErrOption)
	}
	o, err := newOnceCall(tx, key, opts)
	if err != nil {
		return none, err
	}
	if tx.DryRun {
		return fn(o.Session)
	}
	effect := func(tx *gorm.DB) (any, error) { return fn(tx) }
	if err := o.Run(effect, &result); err != nil {
		return none, fault.Caused(tx, err)
	}
	return result, nil
}

// OnceOption changes what [Once] stores with a key, and what it compares.
type OnceOption interface{ apply(*once.Call) error }

type onceOption func(*once.Call) error

func (o onceOption) apply(to *once.Call) error { return o(to) }

// ForRequest stores the request with the key: its body, or a value with the parts that matter. A call with the same key and
// another request is [ErrOtherRequest]. So is a call whose key was stored without a request. Only a SHA-256 is stored: of the bytes, or of the
// JSON of any other value. A value that JSON does not keep, such as a reader, is [ErrOption]. Default: requests are not compared.
func ForRequest(request any) OnceOption {
	return onceOption(func(o *once.Call) error { return o.MadeFor(request) })
}

// Expires lets [SweepOnce] remove the key once it is this old, whatever olderThan says. The key counts until SweepOnce
// has removed it. Default: the olderThan of SweepOnce.
func Expires(after time.Duration) OnceOption {
	return onceOption(func(o *once.Call) error {
		if after < time.Microsecond {
			return fmt.Errorf("%w: Expires(%s): the time must be at least 1µs", fault.ErrOption, after)
		}
		o.Expires = after
		return nil
	})
}

// newOnceCall checks everything that can be checked before the server is asked.
func newOnceCall(tx *gorm.DB, key string, opts []OnceOption) (*once.Call, error) {
	o, err := once.New(tx, key)
	if err != nil {
		return nil, err
	}
	for _, option := range opts {
		if option == nil {
			return nil, fmt.Errorf("%w: a nil option", ErrOption)
		}
		if err := option.apply(o); err != nil {
			return nil, err
		}
	}
	if err := o.Enter(tx); err != nil {
		return nil, err
	}
	return o, xact.AcquireAsked(tx)
}

// OnceSchema is the DDL of the table of [Once], for those who keep their own migrations.
const OnceSchema = `CREATE TABLE IF NOT EXISTS gormlock_once (
	key        text PRIMARY KEY,
	request    bytea,                              -- SHA-256 of the request, NULL: not compared
	result     json,                               -- as it was stored, byte for byte
	created_at timestamptz NOT NULL DEFAULT now(),
	expires_at timestamptz                         -- NULL: when the sweep says
);
CREATE INDEX IF NOT EXISTS gormlock_once_created_at ON gormlock_once (created_at) WHERE expires_at IS NULL;
CREATE INDEX IF NOT EXISTS gormlock_once_expires_at ON gormlock_once (expires_at) WHERE expires_at IS NOT NULL`

// MigrateOnce creates the table of [Once] where the search_path finds none. Any number of programs may call it at once.
// On failure nothing was created.
func MigrateOnce(db *gorm.DB) error { return once.Migrate(db, OnceSchema) }

// SweepOnce removes up to limit keys of [Once] that are past their [Expires] or, if they have none, older than
// olderThan, and returns how many. Several programs may sweep at once. Call it again until it removes fewer than limit:
//
//	for {
//		n, err := gormlock.SweepOnce(db, 30*24*time.Hour, 1000)
//		if err != nil || n < 1000 {
//			break
//		}
//	}
//
// A key that is gone can be used again, so olderThan must be longer than the time in which anybody repeats a request.
func SweepOnce(db *gorm.DB, olderThan time.Duration, limit int) (int64, error) {
	return once.Sweep(db, olderThan, limit)
}
