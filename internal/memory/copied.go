package memory

import (
	"reflect"
	"slices"

	"github.com/gormlock/gormlock/internal/model"
)

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
