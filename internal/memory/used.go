package memory

import (
	"reflect"
	"slices"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
)

// A struct that went astray is its program's again as soon as that uses it: it has got what a rollback leaves in it, or was read again. What the
// transaction did to it before concerns it no more, also when the program calls Rollback after all.

// found returns what is known about a stray, and what was before the program used it. From now on it is used: it was read again, or is restored
// now. Its transaction, if it may still be rolled back, is told of later uses too, because the program may use the struct for another row.
func found(row reflect.Value) (all, before []stray) {
	at, _ := whereIs(row)
	if !HasStrays() {
		return nil, nil
	}
	strays.mu.Lock()
	defer strays.mu.Unlock()
	known := strays.at[at]
	if known == nil {
		return nil, nil
	}
	if known.hasGone() {
		forgetStray(at)
		return nil, nil
	}
	var used []stray
	for _, one := range known.all {
		if one.done {
			before = append(before, one)
		} else {
			all = append(all, one)
		}
		if one.in != nil {
			one.done = true
			used = append(used, one)
		}
	}
	if known.all = used; len(used) == 0 {
		forgetStray(at)
	}
	return all, before
}

func forgetStray(at placeOf) {
	delete(strays.at, at)
	strays.count.Add(-1)
}

// usedThen is such a use. The program may move another struct to the place later.
type usedThen struct {
	at    int64        // the moment
	model *model.Model // nil: it is not known
	key   Key          // of the row, as it was spelt
	none  bool         // it had no key
}

// noteUsed notes that the program uses a struct now, for the transactions in which it was a stray, or used one.
func noteUsed(row reflect.Value, all, before []stray) {
	at, _ := whereIs(row)
	for _, one := range slices.Concat(all, before) {
		if one.in == nil {
			continue
		}
		then := usedThen{at: journal.Moment(), model: one.model}
		if one.model != nil {
			then.key, then.none = KeyOf(one.model.Schema, row).spelling(), isUnkeyed(one.model.Schema, row)
		}
		one.in.of.Used.Store(at, then)
	}
}

// used is the moment when the program used a struct that had gone astray, or read it outside of a transaction; 0: it has not, or another struct is
// there by now.
func (p *Places) used(row reflect.Value) (at int64) {
	if p == nil {
		return 0
	}
	if one := p.place(row); one != nil {
		at = one.readOutside()
	}
	if p.all == nil {
		return at
	}
	place, _ := whereIs(row)
	noted, _ := p.all.Used.Load(place)
	if then, _ := noted.(usedThen); then.model == nil || then.none || KeyOf(then.model.Schema, row).spelling() == then.key {
		return max(at, then.at)
	}
	return at
}

// IsUsedSince reports whether the program has used a struct since a moment.
func (p *Places) IsUsedSince(row reflect.Value, at int64) bool { return p.used(row) > at }

// IsUsed reports whether the program has used the struct of this number since the statement.
func (s *Structs) IsUsed(i int) bool { return s.Places.IsUsedSince(s.Row(i), max(s.keptAt, s.leftAt)) }

// IsUsed reports whether it has used a struct since these were noted.
func (n *Noted) IsUsed(p *Places, row reflect.Value) bool { return p.IsUsedSince(row, n.at) }

// isUsed reports whether it has used what is at a place since the last statement that wrote there.
func (p *Places) isUsed(one *place) bool {
	at := p.used(one.row)
	for i := 0; i < len(one.keepers) && at > 0; i++ {
		if by := one.keepers[i]; by.of != nil && by.at() > at {
			return false
		}
	}
	return at > 0
}

// readOutside is when a query outside of transactions read into a place, after the last statement of this transaction that had a struct there; 0: none
// did, or that is not known. An older one may have read another struct, which was at this address before.
func (p *place) readOutside() int64 {
	at := lastReadInto(p.model, p.row)
	if len(p.keepers) == 0 || slices.ContainsFunc(p.keepers, func(by keeper) bool { return by.at() >= at }) {
		return 0
	}
	return at
}
