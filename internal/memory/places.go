package memory

import (
	"reflect"
	"slices"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/model"
)

// Places are all places where a transaction is known to have had structs. The caller may have moved structs since: sorted a slice, shifted it,
// swapped two. A rollback looks for each by its key, wherever it is. Places only grow: what a later rollback needs is added to what earlier
// ones knew.
type Places struct {
	at     map[placeOf]*place
	of     map[reflect.Type][]*place
	tables map[reflect.Type][]Table
	met    map[rowOf][]met             // which versions of a row were met
	bulks  map[reflect.Type][]*Structs // statements that wrote rows of which they had no structs, the oldest first
	copied map[rowOf]bool              // GORM has copied structs of theirs to where the caller has them, and nobody can take their keys out there

	sought map[reflect.Type]map[Key]*versions // the rows of what is taken back now
	by     map[rowOf][]*place                 // where these are
	undone map[rowOf][]keeper                 // what is taken back now
}

// place is one of them.
type place struct {
	model   *model.Model
	row     reflect.Value
	number  reflect.Value // its key, if that is a number
	tables  []Table       // whose rows were there
	keepers []keeper      // who had a struct there, the oldest first
}

// rowOf is a row, by its model and its key. In another table there may be one more.
type rowOf struct {
	of  reflect.Type
	key Key
}

// placeOf is the address of a struct of a type: a struct and its first field have the same.
type placeOf struct {
	of reflect.Type
	at uintptr
}

// NewPlaces knows no place.
func NewPlaces() *Places {
	p := &Places{at: map[placeOf]*place{}, of: map[reflect.Type][]*place{}, tables: map[reflect.Type][]Table{}}
	p.met, p.bulks, p.copied = map[rowOf][]met{}, map[reflect.Type][]*Structs{}, map[rowOf]bool{}
	p.Begin()
	return p
}

// Add adds the places of the structs of a statement. Those of older statements must be added before.
func (p *Places) Add(s *Structs) {
	for i := range s.Count {
		if p.see(s.model, s.In, s.Row(i)); s.before == nil || s.After == nil {
			continue
		}
		if s.Copied {
			p.copied[s.left(i)] = true
		}
		p.own(s.Row(i), keeper{of: s, i: i})
		if s.namesNone(i) && !s.FoundNone {
			p.bulks[s.Type()] = append(p.bulks[s.Type()], s)
		}
		p.meet(s.Type(), heldIn(s.model, s.Was(i)), s.keptAt, false)
	}
}

// AddNoted adds the places of structs that were read or tried.
func (p *Places) AddNoted(n *Noted) {
	for i := range n.all {
		p.see(n.all[i].kind.model, n.all[i].kind.in, n.all[i].row)
		p.own(n.all[i].row, keeper{noted: n, i: i})
		p.meet(n.all[i].row.Type(), n.all[i].is, n.at, !n.tried)
	}
}

// met is a version of a row that a statement met, and when the first one did.
type met struct {
	version column.Value
	at      int64
	read    bool
}

func (p *Places) meet(of reflect.Type, is held, at int64, read bool) {
	row := rowOf{of, is.key}
	for i, known := range p.met[row] {
		if known.version.Equal(is.version) {
			p.met[row][i].at, p.met[row][i].read = min(known.at, at), known.read || read
			return
		}
	}
	p.met[row] = append(p.met[row], met{is.version, at, read})
}

// isOwn reports whether the version at which a row was read at that moment may be one from before the transaction. It is if a struct had it
// before, and before rows were written of which there were no structs. It is not if such rows were written before, or the row was read before
// at another version.
func (p *Places) isOwn(of reflect.Type, is held, at int64) bool {
	bulk, wrote := p.bulkBefore(of, at)
	moved := false
	for _, met := range p.met[rowOf{of, is.key}] {
		switch {
		case met.at >= at:
		case !met.version.Equal(is.version):
			moved = moved || met.read
		case !wrote || met.at < bulk:
			return true
		}
	}
	return !wrote && !moved
}

// bulkBefore is the moment of the first statement before another moment that wrote rows of which there were no structs, and was not taken back by then.
func (p *Places) bulkBefore(of reflect.Type, moment int64) (at int64, is bool) {
	for _, s := range p.bulks[of] {
		if s.keptAt < moment && (!s.isUndone() || s.undoneAt > moment) {
			return s.keptAt, true
		}
	}
	return 0, false
}

// See adds the place of a struct of which nothing else is known, such as a copy of others.
func (p *Places) See(m *model.Model, in Table, row reflect.Value) { p.see(m, in, row) }

func (p *Places) see(m *model.Model, in Table, row reflect.Value) {
	if !row.IsValid() || !row.CanAddr() || row.Type() != m.Schema.ModelType {
		return
	}
	at := placeOf{row.Type(), row.Addr().Pointer()}
	one := p.at[at]
	if one == nil {
		one = &place{model: m, row: row, number: numberIn(m.Schema, row)}
		p.at[at] = one
		p.of[at.of] = append(p.of[at.of], one)
	}
	if !slices.Contains(one.tables, in) {
		one.tables = append(one.tables, in)
	}
	if !slices.Contains(p.tables[at.of], in) {
		p.tables[at.of] = append(p.tables[at.of], in)
	}
}

// place is the one where a struct is, nil if it is not known.
func (p *Places) place(row reflect.Value) *place {
	if p == nil {
		return nil
	}
	at, _ := whereIs(row)
	return p.at[at]
}

// Begin begins to look for what is taken back.
func (p *Places) Begin() {
	p.sought, p.by, p.undone = map[reflect.Type]map[Key]*versions{}, map[rowOf][]*place{}, map[rowOf][]keeper{}
}

// versions are those of the structs that are looked for.
type versions struct {
	are []column.Value
	all bool
}

func (v *versions) add(one column.Value) {
	if !v.has(one) {
		v.are = append(v.are, one)
	}
}

func (v *versions) has(one column.Value) bool {
	return v.all || slices.ContainsFunc(v.are, one.Equal)
}

// Seek looks for the structs of a row, whatever their versions are.
func (p *Places) Seek(of reflect.Type, key Key) { p.seek(of, key).all = true }

func (p *Places) seek(of reflect.Type, key Key) *versions {
	if p.sought[of] == nil {
		p.sought[of] = map[Key]*versions{}
	}
	if p.sought[of][key] == nil {
		p.sought[of][key] = &versions{}
	}
	return p.sought[of][key]
}

// SeekLeft looks for what a statement left. It will be taken back.
func (p *Places) SeekLeft(s *Structs) {
	if s.After == nil {
		return
	}
	for i := range s.Count {
		if !s.namesNone(i) {
			left := s.left(i)
			p.seek(left.of, left.key).add(versionIn(s.model, s.Of(s.After, i)))
			p.undone[left] = append(p.undone[left], keeper{of: s, i: i})
		}
	}
}

// Find finds all that is looked for.
func (p *Places) Find() {
	for of, keys := range p.sought {
		for _, one := range p.of[of] {
			key := one.key()
			if sought := keys[key]; sought != nil && sought.has(versionIn(one.model, one.row)) {
				p.by[rowOf{of, key}] = append(p.by[rowOf{of, key}], one)
			}
		}
	}
}

// found notes that a place has another key now, or another version.
func (p *Places) found(row reflect.Value) {
	if one := p.place(row); one != nil {
		is := rowOf{row.Type(), KeyOf(one.model.Schema, row)}
		p.by[is] = append(p.by[is], one)
	}
}

func (p *place) key() Key {
	if p.number.IsValid() {
		return Key{n: p.number.Int()}
	}
	return KeyOf(p.model.Schema, p.row)
}

// Of returns the known places of structs of a type that had this key when they were found.
func (p *Places) Of(of reflect.Type, in Table, key Key) (rows []reflect.Value) {
	if p == nil {
		return nil
	}
	for _, one := range p.by[rowOf{of, key}] {
		if in.among(one.tables) != twoTables {
			rows = append(rows, one.row)
		}
	}
	return rows
}

// mixes reports whether the structs of a type are rows of several tables. Which of them a struct belongs to that the caller has moved is
// not known.
func (p *Places) mixes(of reflect.Type) bool {
	return slices.ContainsFunc(p.tables[of], func(in Table) bool { return in.like(p.tables[of][0]) != oneTable })
}

// Forget makes structs of a model unread that stand where the transaction had others, if nothing tells what their versions were
// before. With all, it does so for those that are put back too.
func (p *Places) Forget(of reflect.Type, all bool) {
	for its, places := range p.of {
		if of != nil && of != its {
			continue
		}
		for _, one := range places {
			if version := one.model.Column; version != nil && one.isMoved() && (all || !p.isPutBack(one)) {
				version.Write(one.row, version.Unread())
			}
		}
	}
}

// isPutBack reports whether what is taken back now has left the struct at a place.
func (p *Places) isPutBack(one *place) bool {
	left := p.undone[rowOf{one.row.Type(), KeyOf(one.model.Schema, one.row)}]
	return !p.mixes(one.row.Type()) && slices.ContainsFunc(left, func(by keeper) bool { return by.of.leftIn(one.row, by.i) })
}

// elsewhere returns the other places of the row that the struct of this number stood for, and those that may be of it or of one in another
// table.
func (s *Structs) elsewhere(i int) (others, unsure []reflect.Value) {
	if version := s.model.Column; s.namesNone(i) || version != nil && !version.Loaded(version.Read(s.Of(s.After, i))) { // unread ones may be others
		return nil, nil
	}
	found, mixed, stayed := s.Places.by[s.left(i)], s.Places.mixes(s.model.Schema.ModelType), s.versionStayed(i)
	own := s.Row(i)
	others = make([]reflect.Value, 0, len(found))
	for _, one := range found {
		row := one.row
		if own.IsValid() && row.Addr().Pointer() == own.Addr().Pointer() || !s.leftIn(row, i) || s.Guessed && one.hasOwn(s, i) || stayed && !s.showsIn(row, i) {
			continue
		}
		switch is := s.In.among(one.tables); {
		case mixed && one.isMoved(), is == perhaps, is == oneTable && one.mayBeAnother(s, i):
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

// versionStayed reports whether the statement has left the version as it was. Then others may have it too, and it is right after a rollback.
func (s *Structs) versionStayed(i int) bool {
	version := s.model.Column
	return version != nil && version.Read(s.Was(i)).Equal(version.Read(s.Of(s.After, i)))
}

// showsIn reports whether a place has what the statement left in one of the columns that it changed.
func (s *Structs) showsIn(row reflect.Value, i int) bool {
	shows := false
	s.each(i, func(field *schema.Field, old, left pointee) {
		shows = shows || !holds(old, left) && holds(state(field, row), left)
	})
	return shows
}

// isAsLeft reports whether all columns of a place are as the statement left them in the struct of this number.
func (s *Structs) isAsLeft(row reflect.Value, i int) bool {
	all := true
	s.each(i, func(field *schema.Field, _, left pointee) { all = all && holds(state(field, row), left) })
	return all
}

// left is the row that the struct of this number stands for since the statement.
func (s *Structs) left(i int) rowOf {
	return rowOf{s.model.Schema.ModelType, KeyOf(s.model.Schema, s.Of(s.After, i))}
}
