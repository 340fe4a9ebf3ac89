package fence

import (
	"errors"
	"fmt"

	"github.com/gormlock/gormlock/internal/absent"
)

// Token is the number of one acquisition of one key. Of two tokens of a key the
// one with the greater Number was issued later; numbers of different keys do not
// compare. A Number of 0 was never issued.
type Token struct {
	Space  int16  // 1: the key is one bigint, 2: two int4; as objsubid in pg_locks
	ID     int64  // of two int4 the first is in the upper half
	Topic  string // the first part of the key's name, "" when it has none
	Name   string // the key for people
	Number int64
}

// Key is what this package needs to know of a key. A lockkey.Key has it.
type Key interface {
	Int64() (id int64, ok bool)
	Pair() (hi, lo int32, ok bool)
	Topic() string
	String() string
	Err() error
}

const (
	spaceInt64 = 1
	spacePair  = 2
)

// For is the token of a key with the given number. An invalid key gives its error. A renamed key is an error: it stands
// for two keys, whose tokens cannot be compared, so no token would guard against all holders.
func For(k Key, number int64) (Token, error) {
	if absent.Is(k) {
		return Token{}, errors.New("gormlock: a fencing token for a nil key, make one with lockkey.Of")
	}
	t := Token{Topic: k.Topic(), Name: k.String(), Number: number}
	if id, ok := k.Int64(); ok {
		t.Space, t.ID = spaceInt64, id
		return t, nil
	}
	if hi, lo, ok := k.Pair(); ok {
		t.Space, t.ID = spacePair, int64(hi)<<32|int64(uint32(lo))
		return t, nil
	}
	if err := k.Err(); err != nil {
		return Token{}, err
	}
	return Token{}, fmt.Errorf("gormlock: %s stands for two locks, and a token belongs to one: move its row to the new key, see lockkey.Renamed", k)
}

// IsZero reports whether t was never issued.
func (t Token) IsZero() bool {
	return t.Number == 0
}

// SameKey reports whether t and other are tokens of one key, and so compare.
func (t Token) SameKey(other Token) bool {
	return t.Space == other.Space && t.ID == other.ID
}

// String is the token for people: invoice/42#1099511627777.
func (t Token) String() string {
	if t.IsZero() {
		return "no token"
	}
	return fmt.Sprintf("%s#%d", t.Name, t.Number)
}
