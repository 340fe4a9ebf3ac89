package gormlock

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"gorm.io/gorm"
)

// ErrOtherRequest says that the key of [Once] was used before, for another request: see [ForRequest]. Nothing was
// executed.
var ErrOtherRequest = errors.New("gormlock: the key belongs to another request")

// Once runs fn at most once for a key, in the transaction tx, and returns what it returned to every later call with
// that key: the idempotency keys of payment services.
//
//	err := db.Transaction(func(tx *gorm.DB) error {
//		receipt, err := gormlock.Once(tx, "charge/"+idempotencyKey, func(tx *gorm.DB) (Receipt, error) { … })
//		…
//	})
//
// The key, the effect of fn and its result are rows of one transaction: they are stored together or not at all. A call
// that finds the key in an open transaction waits for its end; then it gets the result, or runs fn if there is none. That
// wait is the one of any INSERT, bounded by ctx and lock_timeout; who would rather refuse a request whose twin is
// running takes a lock first:
//
//	gormlock.Transaction(db, fn, gormlock.Locking(gormlock.Key("charge", idempotencyKey), gormlock.Try()))
//
// If fn fails or panics, what it did and the key are rolled back to a savepoint, and the next call runs fn again, also if
// the transaction goes on and is committed. A stale write in fn fails it even if fn drops the error.
//
// The result is kept as JSON, and what Once returns has been through JSON the first time too, so that the first caller
// does not see more than the others. A result that JSON cannot hold, that does not come back or that is longer than
// 1 MiB is an error, and the effect is rolled back. A T that has changed since is filled as json.Unmarshal does;
// where that fails, the error says so and fn is not run.
//
// What fn does outside of the database is done again when the commit fails: hand the key on to services that know
// idempotency keys themselves. fn must not commit or roll back tx.
//
// A key is text of 1 to 1024 bytes, shared by all callers of the database: begin it with what it is for, and whose it
// is. The table is that of [MigrateOnce]; keys stay until [SweepOnce] removes them. At REPEATABLE READ and above a key
// that was stored after the snapshot is an error that [IsRetryable] knows. Outside of a transaction Once is
// [ErrNoTransaction]. On any error the transaction is as usable as it was, unless ctx has ended or the connection is gone.
func Once[T any](tx *gorm.DB, key string, fn func(tx *gorm.DB) (T, error), opts ...OnceOption) (T, error) {
	var result, none T
	if fn == nil {
		return none, fmt.Errorf("%w: a nil function", ErrOption)
	}
	o, err := newOnce(tx, key, opts)
	if err != nil {
		return none, err
	}
	if tx.DryRun {
		return fn(o.session)
	}
	effect := func(tx *gorm.DB) ([]byte, error) {
		made, err := fn(tx)
		if err != nil {
			return nil, err
		}
		stored, err := json.Marshal(made)
		if err != nil {
			return nil, fmt.Errorf("gormlock: once %q: the result cannot be stored: %w", key, err)
		}
		return stored, nil
	}
	read := func(stored []byte) error {
		if err := json.Unmarshal(stored, &result); err != nil {
			return fmt.Errorf("gormlock: once %q: the stored result is no %T: %w", key, none, err)
		}
		return nil
	}
	if err := o.run(effect, read); err != nil {
		return none, err
	}
	return result, nil
}

// OnceOption changes what [Once] stores with a key, and what it compares.
type OnceOption interface{ apply(*once) error }

type onceOption func(*once) error

func (o onceOption) apply(to *once) error { return o(to) }

// ForRequest says what the key was made for: the body of the request, or a value with what matters in it. A call with
// the same key and another request is [ErrOtherRequest], as is one whose key was stored without a request. Kept is a
// SHA-256 of the bytes, or of the JSON of any other value. Default: requests are not compared.
func ForRequest(request any) OnceOption {
	return onceOption(func(o *once) error {
		text, raw := request.([]byte)
		if !raw {
			var err error
			if text, err = json.Marshal(request); err != nil {
				return fmt.Errorf("gormlock: once %q: the request cannot be compared: %w", o.key, err)
			}
		}
		sum := sha256.Sum256(text)
		o.request = sum[:]
		return nil
	})
}

// Expires lets [SweepOnce] remove the key once it is this old, whatever the age it is told. Until it is removed it
// counts. Default: the age that SweepOnce is told.
func Expires(after time.Duration) OnceOption {
	return onceOption(func(o *once) error {
		if after < time.Microsecond {
			return fmt.Errorf("%w: Expires(%s), a key must be kept for some time", ErrOption, after)
		}
		o.expires = after
		return nil
	})
}

// longestOnceKey is how many bytes a key can have. It fits the index with room to spare.
const longestOnceKey = 1024

// newOnce checks all that can be known before the server is asked.
func newOnce(tx *gorm.DB, key string, opts []OnceOption) (*once, error) {
	if err := usable(tx); err != nil {
		return nil, err
	}
	switch {
	case key == "":
		return nil, fmt.Errorf("%w: once: an empty key", ErrOption)
	case len(key) > longestOnceKey:
		return nil, fmt.Errorf("%w: once: a key of %d bytes, %d is the most", ErrOption, len(key), longestOnceKey)
	case !utf8.ValidString(key) || strings.ContainsRune(key, 0):
		return nil, fmt.Errorf("%w: once %q: the key is no text that PostgreSQL can store", ErrOption, key)
	}
	o := &once{key: key}
	for _, option := range opts {
		if option == nil {
			return nil, fmt.Errorf("%w: nil", ErrOption)
		}
		if err := option.apply(o); err != nil {
			return nil, err
		}
	}
	if !isPostgres(tx) {
		return nil, fmt.Errorf("%w, not %s: once %q", ErrNotPostgres, tx.Name(), key)
	}
	o.session = tx.Session(&gorm.Session{})
	if tx.DryRun {
		return o, nil
	}
	open, ok := unprepared(tx.Statement.ConnPool).(onceTx)
	if !ok {
		return nil, fmt.Errorf("%w: once %q", ErrNoTransaction, key)
	}
	o.tx = open
	return o, nil
}
