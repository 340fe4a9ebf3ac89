package memory

import (
	"reflect"
	"slices"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// Places are all places where a transaction is known to have had structs, by the rows that they stand for now. The caller may
// have moved structs since: sorted a slice, shifted it, swapped two. A rollback restores each by its key, wherever it is.
type Places struct {
	by      map[rowOf][]reflect.Value
	seen    map[placeOf][]Table // the tables whose rows were there, the last one first
	tables  map[reflect.Type][]Table
	keepers map[placeOf][]keeper
	copied  map[rowOf]bool // GORM has copied structs of theirs to where the caller has them, and nobody can take their keys out there
	moved   []*movedRow
}

// rowOf is a row, by its model and its key. In another table there may be one more.
type rowOf struct {
	of  reflect.Type
	key string
}

// placeOf is the address of a struct of a type: a struct and its first field have the same.
type placeOf struct {
	of reflect.Type
	at uintptr
}

// movedRow is a place that holds another struct than the transaction last had there.
type movedRow struct {
	model *model.Model
	row   reflect.Value
	known bool // a statement that is rolled back has left this struct, so its version is put back
}

// NewPlaces knows no place.
func NewPlaces() *Places {
	return &Places{by: map[rowOf][]reflect.Value{}, seen: map[placeOf][]Table{}, tables: map[reflect.Type][]Table{}, keepers: map[placeOf][]keeper{}, copied: map[rowOf]bool{}}
}

// Add adds the places of the structs of a statement. Those of newer statements must be added before.
func (p *Places) Add(s *Structs) {
	for i := range s.Count {
		row := s.Row(i)
		known := !p.see(s.model, s.In, row)
		if s.before == nil || s.After == nil {
			continue
		}
		if s.Copied {
			p.copied[s.left(i)] = true
		}
		p.own(row, keeper{s, i})
		if known {
			continue
		}
		if key := s.keyIn(row); key != s.keyIn(s.Of(s.After, i)) && key != s.keyIn(s.Was(i)) {
			p.moved = append(p.moved, &movedRow{model: s.model, row: row})
		}
	}
}

// AddRead adds the place of a struct that was read.
func (p *Places) AddRead(m *model.Model, in Table, row reflect.Value) {
	p.see(m, in, row)
	p.own(row, keeper{})
}

// See adds the place of a struct that is a copy of others.
func (p *Places) See(m *model.Model, in Table, row reflect.Value) { p.see(m, in, row) }

// Of returns the known places of structs of a type that had this key when they were added.
func (p *Places) Of(of reflect.Type, in Table, key string) []reflect.Value {
	if p == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.by[rowOf{of, key}]), func(row reflect.Value) bool { return p.tableOf(row, in) == twoTables })
}

// tableOf compares the tables of a place with that of a statement.
func (p *Places) tableOf(row reflect.Value, in Table) likeness {
	at, _ := whereIs(row)
	return in.among(p.seen[at])
}

// see adds one place. It reports false where it was known.
func (p *Places) see(m *model.Model, in Table, row reflect.Value) bool {
	if !row.IsValid() || !row.CanAddr() || row.Type() != m.Schema.ModelType {
		return false
	}
	at := placeOf{row.Type(), row.Addr().Pointer()}
	before := p.seen[at]
	if slices.Contains(before, in) {
		return false
	}
	p.seen[at] = append(before, in)
	if !slices.Contains(p.tables[at.of], in) {
		p.tables[at.of] = append(p.tables[at.of], in)
	}
	if len(before) == 0 {
		p.index(m, row)
	}
	return len(before) == 0
}

func (p *Places) index(m *model.Model, row reflect.Value) {
	is := rowOf{row.Type(), keyIn(m, row)}
	p.by[is] = append(p.by[is], row)
}

// Expect notes that the statement of s will be taken back: what it left is put back, wherever it is.
func (p *Places) Expect(s *Structs) {
	if s.After == nil || len(p.moved) == 0 || p.mixes(s.model.Schema.ModelType) {
		return
	}
	left := make(map[string]int, s.Count)
	for i := range s.Count {
		if !s.namesNone(i) {
			left[s.keyIn(s.Of(s.After, i))] = i
		}
	}
	for _, moved := range p.moved {
		if i, wrote := left[keyIn(moved.model, moved.row)]; wrote && moved.model.Schema.ModelType == s.model.Schema.ModelType {
			moved.known = moved.known || s.leftIn(moved.row, i)
		}
	}
}

// mixes reports whether the structs of a type are rows of several tables. Which of them a struct belongs to that the caller has moved is
// not known.
func (p *Places) mixes(of reflect.Type) bool {
	return slices.ContainsFunc(p.tables[of], func(in Table) bool { return in.like(p.tables[of][0]) != oneTable })
}

// isMoved reports whether a place holds another struct than the transaction last had there.
func (p *Places) isMoved(row reflect.Value) bool {
	return slices.ContainsFunc(p.moved, func(moved *movedRow) bool {
		return moved.row.Type() == row.Type() && moved.row.Addr().Pointer() == row.Addr().Pointer()
	})
}

// Forget makes structs of a model unread that stand where the transaction had others, if nothing tells what their versions were
// before. With all, it does so for those that are put back too.
func (p *Places) Forget(of reflect.Type, all bool) {
	for _, moved := range p.moved {
		if m := moved.model; m.Column != nil && (of == nil || of == m.Schema.ModelType) && (all || !moved.known) {
			m.Column.Write(moved.row, m.Column.Unread())
		}
	}
}

// elsewhere returns the other places of the row that the struct of this number stood for, and those that may be of it or of one in another
// table.
func (s *Structs) elsewhere(i int) (others, unsure []reflect.Value) {
	if version := s.model.Column; s.namesNone(i) || version != nil && !version.Loaded(version.Read(s.Of(s.After, i))) { // unread ones may be others
		return nil, nil
	}
	rows, mixed := s.Places.by[s.left(i)], s.Places.mixes(s.model.Schema.ModelType)
	own := s.Row(i)
	others = make([]reflect.Value, 0, len(rows))
	for _, row := range rows {
		if own.IsValid() && row.Addr().Pointer() == own.Addr().Pointer() || !s.leftIn(row, i) || s.Guessed && s.Places.hasOwn(row, s, i) {
			continue
		}
		switch is := s.Places.tableOf(row, s.In); {
		case mixed && s.Places.isMoved(row), is == perhaps, is == oneTable && s.mayBeAnother(row, i):
			unsure = append(unsure, row)
		case is == oneTable:
			others = append(others, row)
		}
	}
	return others, unsure
}

// leftIn reports whether a row holds the struct of this number as the statement left it, as far as its version tells.
func (s *Structs) leftIn(row reflect.Value, i int) bool {
	if !s.standsFor(row, i) {
		return false
	}
	version := s.model.Column
	return version == nil || version.Read(row).Equal(version.Read(s.Of(s.After, i)))
}

// isAsLeft reports whether all columns of a place are as the statement left them in the struct of this number.
func (s *Structs) isAsLeft(row reflect.Value, i int) bool {
	all := true
	s.each(i, func(field *schema.Field, _, left pointee) { all = all && holds(state(field, row), left) })
	return all
}

// left is the row that the struct of this number stands for since the statement.
func (s *Structs) left(i int) rowOf {
	return rowOf{s.model.Schema.ModelType, s.keyIn(s.Of(s.After, i))}
}

func (s *Structs) keyIn(row reflect.Value) string { return keyIn(s.model, row) }

// KeyIn is the key of a struct as a string.
func KeyIn(m *model.Model, row reflect.Value) string { return keyIn(m, row) }

func keyIn(m *model.Model, row reflect.Value) string {
	if !row.IsValid() {
		return ""
	}
	key := make([]any, len(m.Schema.PrimaryFields))
	for i, field := range m.Schema.PrimaryFields {
		if place := statement.Place(field, row); place.IsValid() {
			key[i] = place.Interface()
		}
	}
	return statement.KeyName(key)
}
