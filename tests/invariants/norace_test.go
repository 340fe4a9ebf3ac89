//go:build !race

package invariants

const raced = false
