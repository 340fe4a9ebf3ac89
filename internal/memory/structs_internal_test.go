package memory

import (
	"reflect"
	"sync"
	"testing"
	"weak"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

type item struct {
	ID      int64
	Name    string
	Note    *string
	Version int64 `gormlock:"version"`
}

// modelOf is the model of the structs of a type.
func modelOf(t *testing.T, of any) *model.Model {
	t.Helper()
	s, err := schema.Parse(of, &sync.Map{}, schema.NamingStrategy{})
	if err != nil {
		t.Fatal(err)
	}
	m := &model.Model{Schema: s}
	if m.Column, err = model.VersionOf(s); err != nil {
		t.Fatal(err)
	}
	for _, field := range s.FieldsByDBName {
		if field.FieldType.Kind() == reflect.Pointer {
			m.Indirect = append(m.Indirect, field)
		}
	}
	return m
}

// kept returns the structs that value is or holds, before a statement.
func kept(t *testing.T, m *model.Model, value any) *Structs {
	t.Helper()
	s := &Structs{}
	if found, _ := s.Find(m, value); !found {
		t.Fatalf("%T is not of %s", value, m.Schema.Name)
	}
	s.Keep()
	return s
}

// written returns the structs of a statement that has written one struct.
func written(t *testing.T, m *model.Model, row *item, write func(*item)) *Structs {
	t.Helper()
	s := kept(t, m, row)
	write(row)
	s.Leave()
	return s
}

// placesOf begins to undo the newest of some statements.
func placesOf(wrote int64, all ...*Structs) *Places {
	p := NewPlaces()
	p.Begin(wrote)
	for _, s := range all {
		p.Add(s)
		s.Places = p
	}
	p.SeekLeft(all[len(all)-1])
	return p
}

func at(value any) reflect.Value { return reflect.ValueOf(value).Elem() }

// A key of one column that is a number or a string allocates nothing.
func TestKeyOf_allocatesNothing(t *testing.T) { //nolint:paralleltest // it counts allocations
	for _, of := range []any{&struct{ ID int64 }{7}, &struct{ ID uint64 }{7}, &struct{ ID string }{"seven"}} {
		s, row := modelOf(t, of).Schema, at(of)
		var is Key
		if n := testing.AllocsPerRun(100, func() { is = KeyOf(s, row) }); n > 0 || is == (Key{}) {
			t.Errorf("the key %+v of %+v takes %v allocations", is, of, n)
		}
	}
}

// If the moment of a try is not known, its structs were met now at the earliest.
func TestNoteTried_atNoKnownMoment(t *testing.T) {
	t.Parallel()
	m, one := modelOf(t, &item{}), item{ID: 1, Version: 2}
	before, wrote := journal.Moment(), journal.Moment()
	for began, want := range map[int64]bool{0: false, before: true} {
		p := NewPlaces()
		p.AddNoted(NoteTried(kept(t, m, &one), began))
		p.Begin(wrote)
		if got := p.predates(at(&one).Type(), Table{}, heldIn(m, at(&one))); got != want {
			t.Errorf("of a statement that began at %d it predates the write: %v", began, got)
		}
	}
}

// Structs of one model may be noted in two tables.
func TestNote_inTwoTables(t *testing.T) {
	t.Parallel()
	m, n, rows := modelOf(t, &item{}), NewNoted(), [2]item{{ID: 1}, {ID: 1}}
	var in [2]Table
	for i, name := range []string{"east", "west"} {
		in[i].name.Relation = statement.RelationOf(name)
		n.Note(m, in[i], at(&rows[i]))
	}
	for i := range in {
		if n.all[i].kind.in != in[i] {
			t.Errorf("struct %d is noted in %+v", i, n.all[i].kind.in)
		}
	}
}

// A version that predates the undone writes stays read if nobody knows what else was read.
func TestPlaces_Forget(t *testing.T) {
	t.Parallel()
	m, rows := modelOf(t, &item{}), [2]item{{ID: 1, Version: 1}, {ID: 2, Version: 1}}
	p, wrote := NewPlaces(), int64(0)
	for i := range rows {
		n := NewNoted()
		n.Note(m, Table{}, at(&rows[i]))
		p.AddNoted(n)
		wrote = max(wrote, journal.Moment()*int64(1-i))
	}
	p.Begin(wrote)
	p.Forget(nil, true)
	if rows[0].Version != 1 || rows[1].Version != -1 {
		t.Errorf("they have the versions %d and %d", rows[0].Version, rows[1].Version)
	}
}

// All columns of a place are compared with what a statement left, including values behind pointers.
func TestIsAs_behindPointers(t *testing.T) {
	t.Parallel()
	m, one, note, other := modelOf(t, &item{}), item{ID: 1}, "note", "other"
	s := written(t, m, &one, func(i *item) { i.Note = &note })
	equal, another := "note", item{ID: 1, Note: &other}
	if same := (item{ID: 1, Note: &equal}); !s.isAsLeft(at(&same), 0) || s.isAsLeft(at(&another), 0) || s.isAsLeft(at(&item{ID: 1}), 0) {
		t.Error("what is behind the pointer does not count")
	}
}

// A place is only kept if it has both the key and the version.
func TestKeptIn(t *testing.T) {
	t.Parallel()
	m, one := modelOf(t, &item{}), item{ID: 1, Version: 1}
	s := written(t, m, &one, func(i *item) { i.Version++ })
	for row, want := range map[item]bool{{ID: 1, Version: 2}: true, {ID: 1, Version: 1}: false, {ID: 2, Version: 2}: false} {
		if s.keptIn(at(&row), s.After, 0) != want {
			t.Errorf("%+v", row)
		}
	}
}

// A copy of which nothing else is known keeps its version if that predates the undone writes, and the statement's own struct still has it.
func TestUndo_besideACopyThatPredates(t *testing.T) {
	t.Parallel()
	m, one, read := modelOf(t, &item{}), item{ID: 1, Name: "b", Version: 1}, item{ID: 1, Name: "a", Version: 2}
	n := NewNoted()
	n.Note(m, Table{}, at(&read))
	wrote := journal.Moment()
	s := written(t, m, &one, func(i *item) { i.Name, i.Version = "a", 2 })
	s.Guessed = true
	copied := read
	p := placesOf(wrote, s)
	p.AddNoted(n)
	p.See(m, Table{}, at(&copied))
	p.Find()
	s.Undo()
	if one != (item{ID: 1, Name: "b", Version: 1}) || copied != (item{ID: 1, Name: "a", Version: 2}) {
		t.Errorf("they are %+v and %+v", one, copied)
	}
}

// A single statement finds its structs after they were moved within their slice, and undoes what it did.
func TestUndo_withinASlice(t *testing.T) {
	t.Parallel()
	rows := []item{{ID: 1, Name: "one", Version: 1}, {ID: 2, Name: "two", Version: 1}}
	s := kept(t, modelOf(t, &item{}), rows)
	for i := range rows {
		rows[i].Name, rows[i].Version = "written", 2
	}
	s.Leave()
	rows[0], rows[1] = rows[1], rows[0]
	s.Undo()
	if rows[0] != (item{ID: 2, Name: "two", Version: 1}) || rows[1] != (item{ID: 1, Name: "one", Version: 1}) {
		t.Errorf("they are %+v", rows)
	}
}

// A new struct that the program has emptied stays empty, because it stood for no row.
func TestUndo_ofANewStructThatWasEmptied(t *testing.T) {
	t.Parallel()
	m := modelOf(t, &item{})
	for was, want := range map[item]item{{Name: "new"}: {}, {ID: 1, Name: "old", Version: 1}: {ID: 1, Name: "old", Version: -1}} {
		one := was
		s := written(t, m, &one, func(i *item) { i.ID, i.Version = 1, was.Version+1 })
		s.Created = was.ID == 0
		one = item{}
		if s.Undo(); one != want {
			t.Errorf("of %+v it is %+v", was, one)
		}
	}
}

// A struct that is passed by value has no place: nothing is known about it, and nothing is restored.
func TestStructs_byValue(t *testing.T) {
	t.Parallel()
	m := modelOf(t, &item{})
	s := kept(t, m, item{ID: 1, Version: 1})
	if s.Leave(); s.Was(0).IsValid() || s.Of(s.After, 0).IsValid() || s.Changed(0) {
		t.Error("it is kept")
	}
	mixed := []any{&item{ID: 1, Version: 1}, item{ID: 2, Version: 1}}
	s = kept(t, m, mixed)
	mixed[0].(*item).Version = 2
	s.Restore()
	if got := mixed[0].(*item).Version; got != 1 {
		t.Errorf("beside it the version is %d", got)
	}
}

// Structs that were not kept before a statement are not known to have changed.
func TestChanged_ofWhatWasNotKept(t *testing.T) {
	t.Parallel()
	one, s := item{ID: 1}, Structs{}
	s.Find(modelOf(t, &item{}), &one)
	if s.Leave(); s.Changed(0) {
		t.Error("it has changed")
	}
}

// If the program has replaced a stray by a struct of another row, it is not restored: it is unread.
func TestRecover_ofAnotherRow(t *testing.T) { //nolint:paralleltest // it has strays
	m, one := modelOf(t, &item{}), item{ID: 1, Name: "one", Version: 1}
	s := written(t, m, &one, func(i *item) { i.Version++ })
	s.Stray(&journal.Astray{Of: &journal.Ever{}, Undone: true})
	one = item{ID: 2, Name: "two", Version: 2}
	if Recover(m, at(&one)); one != (item{ID: 2, Name: "two", Version: -1}) || IsStray(at(&one)) {
		t.Errorf("it is %+v", one)
	}
	ForgetStray(at(&one))
}

// A struct at the address of a stray that is gone is not a stray.
func TestIsStray_whereOneHasGone(t *testing.T) { //nolint:paralleltest // it has strays
	one := at(&item{ID: 1})
	StrayRead(&journal.Astray{Undone: true}, one)
	if loosen(one); !IsStray(one) {
		t.Error("it has gone")
	}
	where, _ := whereIs(one)
	strays.at[where].alive = weak.Pointer[byte]{}
	if IsStray(one) {
		t.Error("it is one")
	}
	if sweep(); HasStrays() || strays.sweeping {
		t.Error("it is looked for")
	}
}
