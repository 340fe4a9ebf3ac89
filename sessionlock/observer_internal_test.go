package sessionlock

import (
	"testing"
	"time"

	"github.com/gormlock/gormlock/lockkey"
)

// Reporting allocates nothing if there is no observer.
//
//nolint:paralleltest // allocations are counted for the whole process
func TestNobodyIsTold_allocatesNothing(t *testing.T) {
	ctx := t.Context()
	r := request{key: lockkey.Of("invoice", 42)}
	c, err := newConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &reporter{observer: c.observer}
	l := &Lock{m: &Manager{reporter: p}, key: r.key}
	for name, tell := range map[string]func(){
		"granted":  func() { p.acquired(ctx, &r, l, time.Time{}, nil) },
		"refused":  func() { p.acquired(ctx, &r, nil, time.Time{}, ErrNotAcquired) },
		"released": func() { p.released(ctx, l, nil) },
	} {
		if n := testing.AllocsPerRun(100, tell); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}
