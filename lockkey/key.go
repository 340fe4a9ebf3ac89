package lockkey

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"unique"
)

// ErrInvalid is in the Err of every unusable [Key]: errors.Is finds it.
var ErrInvalid = errors.New("gormlock: invalid lock key")

// Key is an advisory lock id in one of PostgreSQL's two key spaces, with a name
// for people. It is a small comparable value: == holds for the same id with the
// same name, whatever Go types named it. Two keys are the same lock when
// [Compare] gives 0, whatever their names.
//
// The zero Key is invalid, and so is one made from parts that cannot name a
// lock: [Key.Err] says why, and every function that takes locks returns that
// error before it does anything.
type Key struct {
	id    int64 // a pair is hi<<32 | lo
	space space
	text  string                // the encoded parts of the name; of an invalid key the reason
	old   unique.Handle[former] // of a renamed key, else zero
}

type space uint8

const (
	invalid space = iota
	bigint
	pair
)

// Of is the key named by parts: Of("invoice", 42). Strings, integers, []byte
// and fmt.Stringer values can be parts, named types of these kinds included.
// The id is the first 8 bytes of a SHA-256 over an unambiguous encoding of the
// parts, so Of("a", "bc") and Of("ab", "c") differ; the package comment shows
// the encoding and the line of SQL that computes the same id.
//
// An integer is its decimal text: Of("invoice", 42) and Of("invoice", "42") are
// one key, because an id that reaches one place as a number and another as text
// must name one lock. A named string or integer counts by its value even when
// it has a String method, so that adding one changes no key. Empty parts are
// parts: Of(""), Of("", "") and Of("a", "") are three keys.
//
// With no parts, or with a part that is anything else (a float, a bool, nil, a
// nil pointer, a struct, another Key, a time.Time, whose text holds its
// monotonic clock), the Key is invalid and its Err names the part.
func Of(parts ...any) Key {
	if len(parts) == 0 {
		return Invalid("no parts: name what is locked")
	}
	var room [128]byte
	encoding := room[:0]
	for i, part := range parts {
		text, problem := partText(part)
		if problem != "" {
			return Invalid(fmt.Sprintf("part %d %s", i+1, problem))
		}
		encoding = appendPart(encoding, text)
	}
	sum := sha256.Sum256(encoding)
	return Key{id: int64(binary.BigEndian.Uint64(sum[:8])), space: bigint, text: string(encoding)}
}

// Int64 is the key with this id in the space of one bigint. It has no name.
func Int64(id int64) Key {
	return Key{id: id, space: bigint}
}

// Pair is the key with these ids in the space of two int4. It is a different
// lock from the bigint with the same 64 bits, and it has no name.
func Pair(hi, lo int32) Key {
	return Key{id: int64(hi)<<32 | int64(uint32(lo)), space: pair}
}

// Invalid is a Key that fails on use for the given reason. Use it if you derive
// keys by rules of your own, and the rules do not cover an input.
func Invalid(reason string) Key {
	return Key{text: reason}
}

// Named is the same lock under the name made of parts, or under no name when
// there are none. An invalid key stays as it is.
func (k Key) Named(parts ...string) Key {
	if k.space == invalid {
		return k
	}
	var encoding []byte
	for _, part := range parts {
		encoding = appendPart(encoding, part)
	}
	k.text = string(encoding)
	return k
}

// Int64 is the id in the space of one bigint; ok is false when the key is a
// pair, renamed or invalid.
func (k Key) Int64() (id int64, ok bool) {
	if k.space != bigint || k.isRenamed() {
		return 0, false
	}
	return k.id, true
}

// Pair is the id in the space of two int4; ok is false when the key is a bigint,
// renamed or invalid.
func (k Key) Pair() (hi, lo int32, ok bool) {
	if k.space != pair || k.isRenamed() {
		return 0, 0, false
	}
	return int32(k.id >> 32), int32(k.id), true
}

// Err is nil for a key that can be locked. Otherwise it wraps [ErrInvalid] and
// says which part is wrong.
func (k Key) Err() error {
	switch {
	case k.space != invalid:
		return nil
	case k.text == "":
		return fmt.Errorf("%w: the zero Key", ErrInvalid)
	}
	return fmt.Errorf("%w: %s", ErrInvalid, k.text)
}

// Compare orders keys by their locks: invalid keys, then bigints, then pairs,
// each by number, and a renamed key after its new one. It is 0 if both are the
// same lock, or the same two, whatever their names.
func Compare(a, b Key) int {
	if a.space != b.space {
		return cmp.Compare(a.space, b.space)
	}
	if a.id != b.id || a.old == b.old {
		return cmp.Compare(a.id, b.id)
	}
	return a.compareOld(b)
}
