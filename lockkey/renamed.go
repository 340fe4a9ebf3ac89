package lockkey

import (
	"cmp"
	"unique"
)

// former is the old lock of a renamed key.
type former struct {
	id    int64
	space space
	text  string
}

// Renamed is a key that stands for two locks, that of the new and that of the old key. A call that takes it takes
// both, in one order, or none. So you can change a key while processes are replaced one by one, and they exclude each
// other all the time:
//
//  1. Replace every process that takes old by one that takes Renamed(new, old). Those that take old still are
//     excluded by the old lock.
//  2. When none of them runs any more, replace Renamed(new, old) by new. Both exclude each other by the new lock.
//
// Transaction-level locks, advisory.SessionLocker, and Do and AcquireAll of sessionlock take both. Leases, schedules,
// leaders, slots and fencing tokens refuse a renamed key with an error, because each is a row under one key. Tokens of
// two keys cannot be compared: a holder could be superseded under one key while its writes are guarded by the other.
// docs/renaming-keys.md has the statements that move such a row, which you run while nobody holds the old key.
//
// Let the whole fleet take both before the second step: a process that takes old alone and one that takes new alone do
// not exclude each other. Name and Topic are those of new. Int64 and Pair return false, because there are two locks:
// [Key.Keys] returns them.
//
// If both are the same lock there is nothing to rename, and the key is new. If one of the two is invalid or renamed
// itself, the Key is invalid, and its Err says so.
func Renamed(new, old Key) Key { //nolint:predeclared // the two words of the call
	switch {
	case new.space == invalid:
		return new
	case old.space == invalid:
		return old
	case new.isRenamed() || old.isRenamed():
		return Invalid("one of the two keys was renamed itself: a key is taken under two names, not under three")
	case Compare(new, old) == 0:
		return new
	}
	new.old = unique.Make(former{old.id, old.space, old.text})
	return new
}

// Keys returns the keys of the locks that k stands for, in the order in which they are taken: k itself, or the two of a
// [Renamed] one. An invalid key stands for itself.
func (k Key) Keys() []Key {
	old, renamed := k.Former()
	if !renamed {
		return []Key{k}
	}
	k.old = unique.Handle[former]{}
	if Compare(old, k) < 0 {
		return []Key{old, k}
	}
	return []Key{k, old}
}

// Former returns the old key of a [Renamed] one; ok is false for any other.
func (k Key) Former() (old Key, ok bool) {
	if !k.isRenamed() {
		return Key{}, false
	}
	f := k.old.Value()
	return Key{id: f.id, space: f.space, text: f.text}, true
}

func (k Key) isRenamed() bool { return k.old != unique.Handle[former]{} }

// compareOld orders keys with the same new lock by their old ones. A key that was not renamed comes first.
func (k Key) compareOld(other Key) int {
	a, renamed := k.Former()
	b, otherRenamed := other.Former()
	if !renamed || !otherRenamed {
		return cmp.Compare(len(k.Keys()), len(other.Keys()))
	}
	return Compare(a, b)
}
