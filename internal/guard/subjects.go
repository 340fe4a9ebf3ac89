package guard

import (
	"reflect"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/memory"
)

// subjects are the structs of a statement, and their rows.
type subjects struct {
	memory  memory.Structs // the structs, if any
	batch   bool           // they are in a slice
	emptied bool           // GORM has changed them before, so their earlier content is not known
	rows    []Row          // one for each struct; none: the statement is about rows without structs
	single  [1]Row
}

// expand makes a Row for each struct.
func (s *subjects) expand() {
	if !s.batch {
		s.rows = s.single[:s.memory.Count]
	} else {
		s.rows = make([]Row, s.memory.Count)
	}
	for i := range s.rows {
		s.rows[i].Struct = s.memory.Row(i)
	}
}

// isBulk reports whether the statement is about rows without structs.
func (s *subjects) isBulk() bool { return len(s.rows) == 0 }

// distinct is how many different rows the statement is about.
func (s *subjects) distinct() int {
	n := 0
	for i := range s.rows {
		if !s.rows[i].twin {
			n++
		}
	}
	return n
}

// structBefore is the struct before the statement: GORM may have given it the key of another row since.
func (s *subjects) structBefore(i int) reflect.Value {
	if was := s.memory.Was(i); was.IsValid() {
		return was
	}
	return s.memory.Row(i)
}

// Row is one row of a statement, by its struct.
type Row struct {
	Struct   reflect.Value // addressable if memory can follow it
	Key      []any         // nil if the struct has none
	name     string        // the key as a string, to compare
	held     column.Value  // the version that the struct holds
	Expected column.Value  // the version that the row must have
	next     column.Value
	twin     bool // another row of the batch has the same key
}

// mirrors reports whether, by its version, the struct equals the row before the write. If it does, it equals the row after the write too. If the
// first version is 0, a zero only shows this if it was compared, and not if the caller named that version separately.
func (r *Row) mirrors(v *versionGuard, compared bool) bool {
	if compared {
		return v.choice == nil && r.held.Equal(r.Expected) && (!v.given || !v.IsBlank(r.held))
	}
	return v.Loaded(r.held) && (r.held.N != 0 || !v.ZeroIsLoaded())
}
