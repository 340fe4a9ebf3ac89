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

// Renamed is a key that stands for two locks, those of the new and of the old key: whoever takes it takes both, in one
// order, or none. So a program whose processes are replaced one by one can change its keys while they exclude each
// other all the time:
//
//  1. Replace every process that takes old by one that takes Renamed(new, old). Those that take old still are
//     excluded by the old lock.
//  2. When none of them runs any more, replace Renamed(new, old) by new. Both exclude each other by the new lock.
//
// Transaction-level locks, advisory.SessionLocker, and Do and AcquireAll of sessionlock take both. What keeps a row under its key
// refuses a renamed one with an error: leases, schedules, leaders, slots and fencing tokens. The tokens of two keys do not
// compare: with one token for each, a holder could be superseded under one key while its writes are guarded by the
// other. docs/fencing.md has the statements that move such a row, to be run while nobody holds the old key.
//
// Between the two steps lies the whole fleet: a process that takes old alone and one that takes new alone know nothing of
// each other. Name and Topic are those of new. Int64 and Pair are those of no lock, for there are two: [Key.Keys] has
// them.
//
// When both are the same lock there is nothing to rename, and the key is new. A key that is invalid or was renamed itself
// cannot be one of the two: the Key is invalid then, and its Err says so.
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

// compareOld orders two keys of one new lock by their old ones; a key that was not renamed comes first.
func (k Key) compareOld(other Key) int {
	a, renamed := k.Former()
	b, otherRenamed := other.Former()
	if !renamed || !otherRenamed {
		return cmp.Compare(len(k.Keys()), len(other.Keys()))
	}
	return Compare(a, b)
}
