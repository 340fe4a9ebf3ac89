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
	content reflect.Value // the struct as it was, with its version
}

// Hide hides the versions that the statement has moved.
func (s *Structs) Hide() (all []Hidden) {
	for i := range s.Count {
		version, row, was, after := s.model.Column, s.Row(i), s.Was(i), s.Of(s.After, i)
		if version == nil || s.undone || !row.IsValid() || !row.CanAddr() || !after.IsValid() {
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
	content := reflect.New(row.Type()).Elem()
	content.Set(row)
	hidden := Hidden{m, row, version.Read(row), content}
	version.Write(row, version.Unread())
	return []Hidden{hidden}
}

// Show gives the struct its version back.
func (h Hidden) Show() {
	if h.isUnset(h.row) && keyIn(h.model, h.row) == keyIn(h.model, h.content) {
		h.model.Column.Write(h.row, h.version)
	}
}

// ShowIn gives the version to a copy of the struct.
func (h Hidden) ShowIn(m *model.Model, row reflect.Value) {
	if m.Schema != h.model.Schema || !row.CanAddr() || !h.isUnset(row) {
		return
	}
	shown := reflect.New(row.Type()).Elem()
	shown.Set(row)
	m.Column.Write(shown, h.version)
	if reflect.DeepEqual(shown.Interface(), h.content.Interface()) {
		m.Column.Write(row, h.version)
	}
}

func (h Hidden) isUnset(row reflect.Value) bool {
	return h.model.Column.Unset(h.model.Column.Read(row))
}
