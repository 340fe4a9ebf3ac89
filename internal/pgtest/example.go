package pgtest

import (
	"context"
	"fmt"
	"testing"
)

// Example is a testing.TB for Example functions, which get none:
//
//	t := pgtest.NewExample()
//	defer t.End()
//	db := pgtest.Open(t, pgtest.Schema())
//
// Its failures are panics.
type Example struct {
	testing.TB // nil: methods that are not below panic as well

	cleanups []func()
}

// NewExample begins an example. Call End at its end.
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
