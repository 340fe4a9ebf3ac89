// Package lockkey has keys.
package lockkey

// Key names a lock.
type Key struct{ id int64 }
