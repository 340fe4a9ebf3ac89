package sessionlock

import (
	"testing"
	"time"

	"github.com/gormlock/gormlock/lockkey"
)

// What tells an observer spends nothing where there is none.
//
//nolint:paralleltest // allocations are counted for the whole process
func TestNobodyIsTold_allocatesNothing(t *testing.T) {
	ctx := t.Context()
	r := request{key: lockkey.Of("invoice", 42)}
	c, err := newConfig([]Option{Observer(nil)})
	if err != nil {
		t.Fatal(err)
	}
	l := &Lock{m: &Manager{config: c}, key: r.key}
	for name, tell := range map[string]func(){
		"granted":  func() { l.m.observeTaken(ctx, &r, l, time.Time{}, nil) },
		"refused":  func() { l.m.observeTaken(ctx, &r, nil, time.Time{}, ErrNotAcquired) },
		"released": func() { l.observeReleased(ctx, nil) },
	} {
		if n := testing.AllocsPerRun(100, tell); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}
