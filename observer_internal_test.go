package gormlock

import (
	"errors"
	"testing"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/lockkey"
)

// What tells an observer, and what keeps names of keys, spends nothing where there is none.
//
//nolint:paralleltest // allocations are counted for the whole process
func TestNobodyIsTold_allocatesNothing(t *testing.T) {
	request, err := advisory.NewRequest([]lockkey.Key{Key("invoice", 42)})
	if err != nil {
		t.Fatal(err)
	}
	p, ctx := New(), t.Context()
	stale := &StaleError{Table: "accounts"}
	for name, tell := range map[string]func(){
		"a lock that was granted": func() { p.tellLocks(ctx, request, p.began(), nil, nil) },
		"a lock that was refused": func() { p.tellLocks(ctx, request, p.began(), nil, ErrNotAcquired) },
		"a write that was refused": func() {
			p.tellRefused(ctx, stale)
			p.tellRefused(ctx, errors.ErrUnsupported)
		},
		"locks that were released": func() { released(nil) },
		"names of keys":            func() { p.keyNames.note(nil, request) },
	} {
		if n := testing.AllocsPerRun(100, tell); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}
