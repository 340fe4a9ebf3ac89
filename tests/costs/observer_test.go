package costs_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/lockkey"
)

// What tells an observer, and what keeps names of keys, spends nothing where there is none.
//
//nolint:paralleltest // allocations are counted for the whole process
func TestNobodyIsTold_allocatesNothing(t *testing.T) {
	request, err := lockrequest.New([]lockkey.Key{gormlock.Key("invoice", 42)})
	if err != nil {
		t.Fatal(err)
	}
	p, ctx := install.Of(idle(t, 0, gorm.Config{}, gormlock.New())), t.Context()
	stale := &gormlock.StaleError{Table: "accounts"}
	for name, tell := range map[string]func(){
		"a lock that was granted": func() { journal.TellLocks(ctx, p, request, p.Began(), nil, nil) },
		"a lock that was refused": func() { journal.TellLocks(ctx, p, request, p.Began(), nil, gormlock.ErrNotAcquired) },
		"a write that was refused": func() {
			p.TellRefused(ctx, stale)
			p.TellRefused(ctx, errors.ErrUnsupported)
		},
		"locks that were released": func() { journal.Released(nil) },
		"names of keys":            func() { p.KeyNames.Note(nil, request) },
	} {
		if n := testing.AllocsPerRun(100, tell); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}
