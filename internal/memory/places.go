package memory

import (
	"math"
	"reflect"
	"slices"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
)

// Places are all places where a transaction is known to have had structs. The caller may have moved structs since: sorted a slice, shifted it,
// swapped two. A rollback looks for each struct by its key and version, wherever it is. Places only grow: later rollbacks add to what earlier ones
// knew.
type Places struct {
	at     map[placeOf]*place
	of     map[reflect.Type][]*place
	tables map[reflect.Type][]Table
	met    map[stateOfRow]int64 // when the first statement met each state of a row
	copied map[rowOf]bool       // GORM has copied structs of these rows to the caller's, and nobody can remove their keys there
	reread map[stateOfRow]bool  // a query read the row at that version again
	void   []span               // the earlier rollbacks, the oldest first
	all    *journal.Ever        // what the transaction did; nil: it cannot go astray
	takingBack
}

// takingBack is what the current rollback undoes.
type takingBack struct {
	wrote  int64                              // the moment of the first undone write
	until  int64                              // the moment when the rollback began
	sought map[reflect.Type]map[Key]*versions // the rows that are looked for
	by     map[rowOf][]*place                 // the places of these rows
	undone map[rowOf][]keeper                 // the undone statements of these rows
	left   map[stateOfRow]bool                // the states that they left: whether they made the version
	lost   map[stateOfRow]bool                // the states that are lost, in all places
	read   map[stateOfRow]int64               // when each lost state was first read
	alone  *place                             // only this place is undone, and no other is looked at; nil: all places
}

// place is a place where a transaction had a struct.
type place struct {
	model   *model.Model
	row     reflect.Value
	number  reflect.Value        // the key in it, if that is a number
	tables  []Table              // the tables whose rows were there
	keepers []keeper             // the statements that had a struct there, the oldest first
	part    bool                 // it is in a form that was read
	found   rowOf                // the row whose struct is there, as the rollback found it
	was     Key                  // the key when it was found
	had     map[stateOfRow]int64 // when it first had each state of a row
}

// rowOf is a row, by its model and the spelling of its key. Another table may have a row with the same.
type rowOf struct {
	of  reflect.Type
	key Key
}

// placeOf is the address of a struct of a type: a struct and its first field have the same address.
type placeOf struct {
	of reflect.Type
	at uintptr
}

// NewPlaces returns Places without any place.
func NewPlaces() *Places {
	p := &Places{
		at: map[placeOf]*place{}, of: map[reflect.Type][]*place{}, tables: map[reflect.Type][]Table{},
		met: map[stateOfRow]int64{}, copied: map[rowOf]bool{}, reread: map[stateOfRow]bool{},
	}
	p.Begin(0)
	return p
}

// Add adds the places of the structs of a statement. Older statements must be added first.
func (p *Places) Add(s *Structs) {
	for i := range s.Count {
		if p.see(s.model, s.In, s.Row(i)); s.before == nil || s.After == nil {
			continue
		}
		if s.Copied {
			p.copied[s.left(i)] = true
		}
		p.own(s.Row(i), keeper{of: s, i: i})
		p.meet(s.Row(i), s.In, heldIn(s.model, s.Was(i)), s.keptAt)
		if !s.Guessed {
			p.meet(s.Row(i), s.In, heldIn(s.model, s.Of(s.After, i)), s.leftAt)
		}
	}
}

// AddNoted adds the places of structs that were read or tried.
func (p *Places) AddNoted(n *Noted) {
	for i := range n.all {
		p.see(n.all[i].kind.model, n.all[i].kind.in, n.all[i].row)
		p.own(n.all[i].row, keeper{noted: n, i: i})
		if one := p.place(n.all[i].row); one != nil && n.all[i].part {
			one.part = true
		}
		p.meet(n.all[i].row, n.all[i].kind.in, n.all[i].is, n.at)
		if n.read {
			p.reread[p.stateOf(n.all[i].row.Type(), n.all[i].kind.in, n.all[i].is)] = true
		}
	}
}

// See adds the place of a struct of which nothing else is known, such as a copy.
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

// place returns the place of a struct, or nil if it is not known.
func (p *Places) place(row reflect.Value) *place {
	if p == nil {
		return nil
	}
	at, _ := whereIs(row)
	return p.at[at]
}

// Begin begins a rollback. wrote is the moment of the first undone write; 0: there is none.
func (p *Places) Begin(wrote int64) {
	if p.wrote > 0 && p.wrote < math.MaxInt64 { // from the last rollback
		for len(p.void) > 0 && p.void[len(p.void)-1].from >= p.wrote {
			p.void = p.void[:len(p.void)-1]
		}
		p.void = append(p.void, span{p.wrote, p.until})
	}
	if wrote == 0 {
		wrote = math.MaxInt64
	}
	p.takingBack = takingBack{
		wrote: wrote, until: journal.Moment(),
		sought: map[reflect.Type]map[Key]*versions{}, by: map[rowOf][]*place{}, undone: map[rowOf][]keeper{},
		left: map[stateOfRow]bool{}, lost: map[stateOfRow]bool{}, read: map[stateOfRow]int64{},
	}
}

// versions are the versions of the structs that are looked for.
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

// Seek looks for the structs of a row, at any version.
func (p *Places) Seek(of reflect.Type, key Key) { p.seek(of, key).all = true }

func (p *Places) seek(of reflect.Type, key Key) *versions {
	key = key.spelling()
	if p.sought[of] == nil {
		p.sought[of] = map[Key]*versions{}
	}
	if p.sought[of][key] == nil {
		p.sought[of][key] = &versions{}
	}
	return p.sought[of][key]
}

// SeekLeft looks for what a statement left, which will be undone.
func (p *Places) SeekLeft(s *Structs) {
	if s.After == nil {
		return
	}
	for i := range s.Count {
		if !s.namesNone(i) {
			left := s.left(i)
			p.seek(left.of, left.key).add(versionIn(s.model, s.Of(s.After, i)))
			p.undone[left] = append(p.undone[left], keeper{of: s, i: i})
			if state := p.stateOf(left.of, s.In, heldIn(s.model, s.Of(s.After, i))); !s.Guessed {
				p.left[state] = p.left[state] || !s.versionStayed(i)
			}
		}
	}
}

// Find finds everything that is looked for.
func (p *Places) Find() {
	for of, keys := range p.sought {
		for _, one := range p.of[of] {
			if p.isUsed(one) {
				continue
			}
			key := one.key()
			if sought := keys[key.spelling()]; sought != nil && sought.has(versionIn(one.model, one.row)) {
				one.found, one.was = rowOf{of, key.spelling()}, key
				p.by[one.found] = append(p.by[one.found], one)
			}
		}
	}
}

// found notes the current key and version of a place.
func (p *Places) found(row reflect.Value) {
	one := p.place(row)
	if one == nil {
		return
	}
	if is := (rowOf{row.Type(), one.key().spelling()}); is != one.found {
		one.found = is
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
	for _, one := range p.by[rowOf{of, key.spelling()}] {
		if (one.was == key || one.key() == key) && in.among(one.tables) != twoTables {
			rows = append(rows, one.row)
		}
	}
	return rows
}

// mixes reports whether the structs of a type are rows of several tables. If the caller has moved such a struct, it is not known to which table it
// belongs.
func (p *Places) mixes(of reflect.Type) bool {
	return slices.ContainsFunc(p.tables[of], func(in Table) bool { return in.like(p.tables[of][0]) != oneTable })
}

// Forget makes structs unread if the undone writes may have made their versions. With all, it does so even for those that are restored.
func (p *Places) Forget(of reflect.Type, all bool) {
	for its, places := range p.of {
		if of != nil && of != its {
			continue
		}
		for _, one := range places {
			if version := one.model.Column; version != nil && !p.isUsed(one) && !p.isOld(one) && (all || !p.isPutBack(one)) {
				version.Write(one.row, version.Unread())
			}
		}
	}
}

// isMoved reports whether a place has another struct than the one that the last statement left there.
func (p *place) isMoved() bool {
	if p == nil || len(p.keepers) == 0 {
		return false
	}
	last := p.last()
	is, row := last.left()
	return !is.is(heldIn(p.model, p.row)) || row.IsValid() && !last.of.isAs(last.copies(), p.row, last.i)
}

// isPutBack reports whether the current rollback has restored the struct in a place.
func (p *Places) isPutBack(one *place) bool {
	left := p.undone[rowOf{one.row.Type(), one.key().spelling()}]
	return !p.mixes(one.row.Type()) && slices.ContainsFunc(left, func(by keeper) bool { return by.of.leftIn(one.row, by.i) })
}

// elsewhere returns the other places of the row of the struct of this number, and the places that may have that row or one of another table.
func (s *Structs) elsewhere(i int) (others, unsure []reflect.Value) {
	if version := s.model.Column; s.namesNone(i) || version != nil && !version.Loaded(version.Read(s.Of(s.After, i))) { // unread ones may be others
		return nil, nil
	}
	found, mixed, stayed, reread := s.Places.by[s.left(i)], s.Places.mixes(s.model.Schema.ModelType), s.versionStayed(i), s.wasReread(i)
	own := s.Row(i)
	others = make([]reflect.Value, 0, len(found))
	for _, one := range found {
		row, respelt := one.row, s.isRespelt(one.row, i)
		if isAt(own, row) || !respelt && (!s.leftIn(row, i) || s.Guessed && one.hasOwn(s, i) || stayed && !s.showsIn(row, i)) {
			continue
		}
		switch is := s.In.among(one.tables); {
		case respelt && is != twoTables:
			unsure = append(unsure, row)
		case reread && !one.isTakenBack(s.In), mixed && one.isMoved(), is == perhaps, is == oneTable && one.mayBeAnother(s, i):
			unsure = append(unsure, row)
		case is == oneTable:
			others = append(others, row)
		}
	}
	return others, unsure
}

// leftIn reports whether a row holds the struct of this number as the statement left it, by its version.
func (s *Structs) leftIn(row reflect.Value, i int) bool {
	if !s.standsFor(row, i) {
		return false
	}
	version := s.model.Column
	return version == nil || version.Read(row).Equal(version.Read(s.Of(s.After, i)))
}

// versionStayed reports whether the statement did not change the version. Then other structs may have it too, and it is right after a rollback.
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
	return s.isAs(s.After, row, i)
}

// left is the row of the struct of this number after the statement.
func (s *Structs) left(i int) rowOf {
	return rowOf{s.model.Schema.ModelType, KeyOf(s.model.Schema, s.Of(s.After, i)).spelling()}
}
