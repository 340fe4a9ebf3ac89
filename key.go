package gormlock

import "github.com/gormlock/gormlock/lockkey"

// Key names a lock: Key("invoice", 42). It is [lockkey.Of], which documents the types of parts and how other languages compute
// the same key. If the parts are invalid, using the key returns the error.
func Key(parts ...any) lockkey.Key {
	return lockkey.Of(parts...)
}

// LockKey is the type of a key, for signatures and slices: func accountKey(id int64) gormlock.LockKey. The name Key is taken
// by the function that makes one.
type LockKey = lockkey.Key
