package pgtest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Main runs the tests of a package and exits. At the end it stops the server or drops the database. It fails the run if an advisory lock is still
// held in it or, if all tests passed, if a goroutine is left: LeftGoroutines says which may stay.
func Main(m *testing.M, mayStay ...string) {
	code := m.Run()
	if err := home.close(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	if code == 0 {
		if err := LeftGoroutines(mayStay...); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest: after the tests", err)
			code = 1
		}
	}
	os.Exit(code)
}

// Process makes a process of the test binary a program if the variable is set: it runs that program and exits.
func Process(variable string, program func() error) {
	if os.Getenv(variable) == "" {
		return
	}
	if err := program(); err != nil {
		fmt.Fprintln(os.Stderr, "process of a test:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// MoreAtOnce lets n tests run at a time, unless the command line says how many.
func MoreAtOnce(n int) {
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set(strconv.Itoa(n))
	}
}

// close ends what the tests of this binary used. If they used nothing, it does nothing.
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
