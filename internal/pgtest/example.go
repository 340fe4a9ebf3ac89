package pgtest

import (
	"context"
	"fmt"
	"testing"
)

// Example is the testing.TB of an Example function, which is given none:
//
//	t := pgtest.NewExample()
//	defer t.End()
//	db := pgtest.Open(t, pgtest.Schema())
//
// Its failures are panics.
type Example struct {
	testing.TB // nil: what is not below panics as well

	cleanups []func()
}

// NewExample begins an example. End has to follow.
func NewExample() *Example { return &Example{} }

// End runs the cleanups, the last one first.
func (e *Example) End() {
	for i := len(e.cleanups) - 1; i >= 0; i-- {
		e.cleanups[i]()
	}
	e.cleanups = nil
}

// Helper does nothing.
func (*Example) Helper() {}

// Name is the same for all examples.
func (*Example) Name() string { return "Example" }

// Context is one that does not end.
func (*Example) Context() context.Context { return context.Background() }

// Cleanup registers what End calls.
func (e *Example) Cleanup(f func()) { e.cleanups = append(e.cleanups, f) }

// Error panics.
func (*Example) Error(args ...any) { panic(fmt.Sprint(args...)) }

// Errorf panics.
func (*Example) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// Fatal panics.
func (*Example) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// Fatalf panics.
func (*Example) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
