package memory

import (
	"reflect"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
)

// A struct that went astray is its program's again as soon as that uses it: it has got what a rollback leaves in it, or was read again. What the
// transaction did to it before concerns it no more, also when the program calls Rollback after all.

// usedThen is such a use. The program may move another struct to the place later.
type usedThen struct {
	at    int64        // the moment
	model *model.Model // nil: it is not known
	key   Key          // of the row, as it was spelt
	none  bool         // it had no key
}

// noteUsed notes that the program uses a struct now, for the transactions in which it was a stray.
func noteUsed(row reflect.Value, all []stray) {
	at, _ := whereIs(row)
	for _, one := range all {
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

// used is the moment when the program used a struct that had gone astray; 0: it has not, or another struct is there by now.
func (p *Places) used(row reflect.Value) (at int64) {
	if p == nil || p.all == nil {
		return 0
	}
	place, _ := whereIs(row)
	noted, _ := p.all.Used.Load(place)
	if then, _ := noted.(usedThen); then.model == nil || then.none || KeyOf(then.model.Schema, row).spelling() == then.key {
		return then.at
	}
	return 0
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
