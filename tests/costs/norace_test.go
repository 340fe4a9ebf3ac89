//go:build !race

package costs_test

const allocationSlack = 0
