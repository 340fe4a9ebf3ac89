package memory

import (
	"runtime"
	"testing"
	"weak"
)

// A struct whose key was taken away is known as long as it exists and is as it is.
func TestKeyless(t *testing.T) { //nolint:paralleltest // it counts them
	m := modelOf(t, &item{})
	for name, free := range map[string]func(one *item){
		"it got a key":          func(one *item) { one.ID = 7 },
		"it was emptied":        func(one *item) { *one = item{} },
		"it counts as not read": func(one *item) { *one = item{Version: -1} },
		"it is gone": func(one *item) {
			known := keyless.at[placeAt(one)]
			known.alive = weak.Pointer[byte]{}
			keyless.at[placeAt(one)] = known
		},
	} {
		one := &item{Name: "one"}
		if tookKey(m, at(one)); !IsKeyless(at(one)) || !HasKeyless() {
			t.Errorf("%s: it is not known", name)
		}
		one.Name = "another"
		if !IsKeyless(at(one)) {
			t.Errorf("%s: it is not known after a change", name)
		}
		if free(one); IsKeyless(at(one)) || HasKeyless() {
			t.Errorf("%s: it is known still", name)
		}
	}
	empty := &item{}
	if tookKey(m, at(empty)); !IsKeyless(at(empty)) {
		t.Error("one that had nothing but its key is not known")
	}
	empty.ID = 1
	GotKey(at(empty))
	if tookKey(m, at(empty)); HasKeyless() {
		t.Error("it has a key")
	}
	tookKey(m, at(&item{Name: "gone"}))
	runtime.GC()
	if sweepKeyless(); HasKeyless() || keyless.sweeping {
		t.Error("one that is gone is looked for")
	}
}

// Only the last read into a struct counts, and only while it has what was read.
func TestLastReadInto(t *testing.T) {
	t.Parallel()
	m, one := modelOf(t, &item{}), &item{ID: 1, Version: 3}
	if lastReadInto(m, at(one)) > 0 {
		t.Error("it was read")
	}
	NoteRead(m, at(one))
	first := lastReadInto(m, at(one))
	if NoteRead(m, at(one)); first == 0 || lastReadInto(m, at(one)) <= first {
		t.Error("it was not read again")
	}
	if one.Version++; lastReadInto(m, at(one)) > 0 {
		t.Error("it is at another version")
	}
	if *one = (item{ID: 2, Version: 3}); lastReadInto(m, at(one)) > 0 {
		t.Error("it is of another row")
	}
	none := &item{Version: 3}
	if NoteRead(m, at(none)); lastReadInto(m, at(none)) > 0 {
		t.Error("a struct without a key was read")
	}
}

// A read into another struct, which was at the same address before, says nothing of the struct that a transaction has there.
func TestUsed_atAnAddressThatWasAnothersBefore(t *testing.T) { //nolint:paralleltest // it has a read of its own
	m, one := modelOf(t, &item{}), &item{ID: 1, Version: 2}
	NoteRead(m, at(one)) // long before
	noted, p := NewRead(), NewPlaces()
	noted.Note(m, Table{}, at(one))
	p.AddNoted(noted)
	if p.used(at(one)) > 0 {
		t.Error("it counts as read since")
	}
	if NoteRead(m, at(one)); p.used(at(one)) == 0 {
		t.Error("it was read since")
	}
}
