package memory

import (
	"reflect"

	"github.com/gormlock/gormlock/internal/model"
)

// Hidden is a struct whose version is out of sight.
type Hidden struct {
	model *model.Model
	row   reflect.Value
	key   string
	show  func() // gives it the version back
}

// Hide hides the versions that the statement has moved, of the structs that hides tells.
func (s *Structs) Hide(hides func(row reflect.Value) bool) (all []Hidden) {
	for i := range s.Count {
		version, row, was, after := s.model.Column, s.Row(i), s.Was(i), s.Of(s.After, i)
		if version == nil || s.undone || !row.IsValid() || !after.IsValid() || !hides(row) {
			continue
		}
		if now := version.Read(row); now.Equal(version.Read(after)) && (!was.IsValid() || !now.Equal(version.Read(was))) {
			all = append(all, HideRow(s.model, row)...)
		}
	}
	return all
}

// HideRow hides the version of a struct, if it has one.
func HideRow(m *model.Model, row reflect.Value) []Hidden {
	version := m.Column
	if version == nil || version.Unset(version.Read(row)) {
		return nil
	}
	was := version.Read(row)
	version.Write(row, version.Unread())
	return []Hidden{{m, row, keyIn(m, row), func() { version.Write(row, was) }}}
}

// Show gives the struct its version back, if it is still there and has got no other one.
func (h Hidden) Show() {
	if h.model.Column.Unset(h.model.Column.Read(h.row)) && keyIn(h.model, h.row) == h.key {
		h.show()
	}
}
