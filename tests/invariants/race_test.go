//go:build race

package invariants

// raced holds where the race detector makes each cell several times as slow. One in eight runs then; make test runs the
// package without it, whole.
const raced = true
