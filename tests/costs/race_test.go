//go:build race

package costs_test

// allocationSlack is for the race detector, under which sync.Pool forgets at random.
const allocationSlack = 3
