package compat_test

import (
	"fmt"

	"github.com/gormlock/gormlock/lockkey/compat"
)

// The lock of a Rails application that runs
// Order.with_advisory_lock("orders:42") { ... } with the variable
// WITH_ADVISORY_LOCK_PREFIX set.
func ExampleWithAdvisoryLock() {
	k := compat.WithAdvisoryLock("orders:42", "myapp_staging_")
	hi, lo, _ := k.Pair()
	fmt.Println(k, hi, lo)
	// Output: with-advisory-lock/orders:42 218055877 0
}
