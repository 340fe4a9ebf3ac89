package inspect

import "github.com/gormlock/gormlock/lockkey"

// lockID is an advisory key as pg_locks and the tables of gormlock write it.
type lockID struct {
	space int16
	id    int64
}

func idOf(k lockkey.Key) lockID {
	if hi, lo, ok := k.Pair(); ok {
		return lockID{2, int64(hi)<<32 | int64(uint32(lo))}
	}
	id, _ := k.Int64()
	return lockID{1, id}
}

func (l lockID) key() lockkey.Key {
	if l.space == 2 {
		return lockkey.Pair(int32(l.id>>32), int32(l.id))
	}
	return lockkey.Int64(l.id)
}
