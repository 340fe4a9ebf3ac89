package guard

import (
	"reflect"

	"github.com/gormlock/gormlock/internal/column"
)

// Row is one row of a statement, by its struct.
type Row struct {
	Struct   reflect.Value // addressable where memory can follow
	Key      []any         // nil where the struct has none
	name     string        // the key as a string, to compare
	held     column.Value  // the version that the struct holds
	Expected column.Value  // the one the row must have
	next     column.Value
	twin     bool // another row of the batch has the same key
}

// mirrors reports whether the struct equals the row before the write, as far as its version shows. If so, it equals the
// row after the write too. If the first version is 0, a zero shows this only if it was compared.
func (r *Row) mirrors(v *versionGuard, compared bool) bool {
	if compared {
		return v.choice == nil && r.held.Equal(r.Expected)
	}
	return v.Loaded(r.held) && (r.held.N != 0 || !v.ZeroIsLoaded())
}
