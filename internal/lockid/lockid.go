// Package lockid is what pg_locks and the tables of gormlock write in place of a key: the number of one advisory lock.
package lockid

import "github.com/gormlock/gormlock/lockkey"

// ID is the number of an advisory lock.
type ID struct {
	Space int16 // 1: one bigint, 2: two int4; objsubid in pg_locks
	ID    int64 // of two int4 the first is in the upper half; classid and objid in pg_locks
}

const (
	spaceInt64 = 1
	spacePair  = 2
)

// Of is the number of a key. It reports false for a key that is no single lock: an invalid one, and one that was renamed
// and stands for two, which [lockkey.Key.Keys] has.
func Of(key lockkey.Key) (ID, bool) {
	if id, ok := key.Int64(); ok {
		return ID{spaceInt64, id}, true
	}
	if hi, lo, ok := key.Pair(); ok {
		return ID{spacePair, int64(hi)<<32 | int64(uint32(lo))}, true
	}
	return ID{}, false
}

// Key is the key of the lock, without a name.
func (i ID) Key() lockkey.Key {
	if i.Space == spacePair {
		return lockkey.Pair(int32(i.ID>>32), int32(i.ID))
	}
	return lockkey.Int64(i.ID)
}

// Halves are the number as the columns classid and objid of pg_locks have it.
func (i ID) Halves() (classid, objid uint32) { return uint32(i.ID >> 32), uint32(i.ID) }
