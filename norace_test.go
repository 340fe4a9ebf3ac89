//go:build !race

package gormlock_test

const allocationSlack = 0
