package holder

import (
	"fmt"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/lockkey"
)

// Place is a key as the server knows it: what excludes whom.
type Place struct {
	Space int16 // 1: one bigint, 2: two int4; as objsubid in pg_locks
	ID    int64 // of two int4 the first is in the upper half
}

const (
	spaceInt64 = 1
	spacePair  = 2
)

// PlaceOf is the place of a key. An invalid key gives its error, and a renamed one has two places.
func PlaceOf(k lockkey.Key) (Place, error) {
	if id, ok := k.Int64(); ok {
		return Place{spaceInt64, id}, nil
	}
	if hi, lo, ok := k.Pair(); ok {
		return Place{spacePair, int64(hi)<<32 | int64(uint32(lo))}, nil
	}
	if err := k.Err(); err != nil {
		return Place{}, err
	}
	return Place{}, fmt.Errorf("%w: %s stands for two locks, and this call takes one", advisory.ErrOption, k)
}
