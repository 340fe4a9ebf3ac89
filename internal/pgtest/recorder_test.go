package pgtest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// recorder is a testing.TB whose failure does not fail the test that uses it.
type recorder struct {
	testing.TB
	said     []string
	cleanups []func()
}

func (r *recorder) Cleanup(f func())          { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Error(args ...any)         { r.said = append(r.said, fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, a ...any) { r.said = append(r.said, fmt.Sprintf(f, a...)) }
func (r *recorder) Fatal(args ...any)         { r.Error(args...); runtime.Goexit() }
func (r *recorder) Fatalf(f string, a ...any) { r.Errorf(f, a...); runtime.Goexit() }

// failing runs a test and returns its failure text, or "" if it did not fail.
func failing(t testing.TB, test func(testing.TB)) string {
	r := &recorder{TB: t}
	run := func(f func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			f()
		}()
		<-done
	}
	run(func() { test(r) })
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		run(r.cleanups[i])
	}
	return strings.Join(r.said, "\n")
}
