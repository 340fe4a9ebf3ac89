package memory

import (
	"reflect"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/model"
)

// Hidden is a struct whose version is out of sight.
type Hidden struct {
	model   *model.Model
	row     reflect.Value
	version column.Value
	key     string
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
	hidden := Hidden{m, row, version.Read(row), keyIn(m, row)}
	version.Write(row, version.Unread())
	return []Hidden{hidden}
}

// Show gives the struct its version back.
func (h Hidden) Show() {
	if h.model.Column.Unset(h.model.Column.Read(h.row)) && keyIn(h.model, h.row) == h.key {
		h.model.Column.Write(h.row, h.version)
	}
}
