package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main runs the tests of a package and exits. At the end it ends the server or drops
// the database, and fails the run when an advisory lock is still held in it or, after
// tests that all passed, when a goroutine is left. More options say which goroutines
// may stay.
func Main(m *testing.M, options ...goleak.Option) {
	code := m.Run()
	if err := home.close(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	if code == 0 {
		// GORM's cache of prepared statements never ends its goroutine.
		options = append(options, goleak.IgnoreAnyFunction("gorm.io/gorm/internal/lru.NewLRU[...].func1"))
		if err := goleak.Find(options...); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest: goroutines are left after the tests:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// close ends what the tests of this binary used; it is a no-op when they used nothing.
func (h *homeDatabase) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.observer == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	err := h.assertNoLocks(ctx)
	err = errors.Join(err, h.observer.db.Close())
	if h.server != nil {
		return errors.Join(err, h.server.Stop())
	}
	return errors.Join(err, dropDatabase(ctx, h.given, h.name))
}

// assertNoLocks gives sessions that have just ended a moment to free their locks.
func (h *homeDatabase) assertNoLocks(ctx context.Context) error {
	var left []string
	err := poll(ctx, 5*time.Second, func() (done bool, err error) {
		left, err = h.observer.all(ctx)
		return len(left) == 0, err
	})
	if errors.Is(err, errTooLong) {
		return fmt.Errorf("advisory locks are left in database %s after the tests: %s", h.name, strings.Join(left, "; "))
	}
	return err
}
