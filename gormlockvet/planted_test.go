package gormlockvet_test

import "testing"

// Programs as people write them, with a comment at each misuse: nearly all are found, and nothing else is.
func TestPlanted(t *testing.T) {
	t.Parallel()
	planted, found := look(t, testdata(t), "./planted/...")
	var missed int
	for _, f := range sorted(planted) {
		if _, ok := found[f]; !ok {
			missed++
			t.Logf("not found: %s", f)
		}
	}
	for _, f := range sorted(found) {
		if _, ok := planted[f]; !ok {
			t.Errorf("found where nothing was planted: %s: %s", f, found[f])
		}
	}
	t.Logf("%d of %d planted misuses found", len(planted)-missed, len(planted))
	const atLeast, share = 60, 0.95
	if n := len(planted); n < atLeast || float64(n-missed) < share*float64(n) {
		t.Errorf("%d of %d found, want %.0f %% of at least %d", n-missed, n, share*100, atLeast)
	}
}

// Programs that do nothing wrong, though they come near it.
func TestInnocent(t *testing.T) {
	t.Parallel()
	_, found := look(t, testdata(t), "./innocent/...")
	for _, f := range sorted(found) {
		t.Errorf("found in an innocent program: %s: %s", f, found[f])
	}
}
