package memory

import (
	"reflect"
	"slices"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/model"
)

// Regain gives the structs back the versions that the statement left in them. GORM copies them to the caller, so they have had none, or that of
// before the statement, until the transaction was committed.
func (s *Structs) Regain() {
	for i := range s.Count {
		s.regain(s.Row(i), i)
	}
}

// regain does so in one place, if the struct of this number is there as the statement left it otherwise.
func (s *Structs) regain(row reflect.Value, i int) {
	version := s.model.Column
	if version == nil || s.before == nil || s.After == nil || !row.IsValid() || !row.CanAddr() {
		return
	}
	var was, left pointee
	asLeft := true
	s.each(i, func(field *schema.Field, before, after pointee) {
		if field == version.Field {
			was, left = before, after
			return
		}
		asLeft = asLeft && holds(state(field, row), after)
	})
	if asLeft && (version.Unset(version.Read(row)) || holds(state(version.Field, row), was)) {
		put(version.Field, row, left)
	}
}

// regainAnywhere does so wherever the transaction has had the row, so that the version can be taken back as that of any other struct. One that
// was read in the transaction stays unread: nothing tells of which state of the row it is.
func (s *Structs) regainAnywhere(i int) {
	if !s.Copied {
		return
	}
	places := append([]reflect.Value{s.Row(i)}, s.Places.by[s.left(i)]...)
	if slices.ContainsFunc(places, s.Places.wasRead) {
		return
	}
	for _, place := range places {
		s.regain(place, i)
	}
}

// IsOfRead reports whether the transaction has read the row that a struct stands for, here or elsewhere.
func (p *Places) IsOfRead(m *model.Model, row reflect.Value) bool {
	return p != nil && slices.ContainsFunc(p.by[rowOf{row.Type(), keyIn(m, row)}], p.wasRead)
}

// wasRead reports whether the transaction has read into a place.
func (p *Places) wasRead(row reflect.Value) bool {
	at, ok := whereIs(row)
	for _, by := range p.keepers[at] {
		if ok && by.of == nil {
			return true
		}
	}
	return false
}
