package whereabouts

import (
	"maps"
	"reflect"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
)

// visit is told of a struct of a model, and of the table of its row.
type visit = func(m *model.Model, in memory.Table, row reflect.Value)

// Holder is a step of a journal that has structs.
type Holder interface{ Held() *memory.Structs }

// Reader is a step of a journal that has what its transaction has read.
type Reader interface {
	EachRow(visit visit)                // the structs of models
	ForgetPlaces(places *memory.Places) // forgets what may have been read in another place since
}

// Placed is a step that knows of structs only where they are.
type Placed interface{ EachPlace(visit visit) }

// Seeker is a step that looks for structs.
type Seeker interface {
	Seek(places *memory.Places) // tells where they are by now
}

// Regroup finds out, before steps are taken back, where the structs of their transaction are by now: the caller may have moved
// them within its slices, and GORM may have copied them within an association.
func Regroup(undone, all []journal.Step, lost bool) {
	places := placesOf(all)
	if lost {
		places.Forget(nil, true)
	}
	read := false
	for _, step := range undone {
		switch step := step.(type) {
		case Holder:
			step.Held().ForgetStrays()
			step.Held().Places = places
			places.Expect(step.Held())
		case Reader:
			read = true
		case Seeker:
			step.Seek(places)
		}
	}
	for _, step := range undone {
		if step, is := step.(Reader); is {
			step.ForgetPlaces(places)
		}
	}
	if read {
		loseCopiesOfRead(all)
	}
}

// loseCopiesOfRead makes copies unread that GORM may have made of what the transaction has read.
func loseCopiesOfRead(all []journal.Step) {
	rows := map[rowOf]bool{}
	for _, step := range all {
		switch step := step.(type) {
		case *copies:
			maps.Copy(rows, step.read)
		case *hidden:
			maps.Copy(rows, step.read)
		}
	}
	if len(rows) == 0 {
		return
	}
	lose := func(m *model.Model, _ memory.Table, row reflect.Value) {
		if m.Column != nil && row.CanAddr() && rows[rowIn(m, row)] {
			m.Column.Write(row, m.Column.Unread())
		}
	}
	for _, step := range all {
		var at []copied
		switch step := step.(type) {
		case *copies:
			at = step.held
		case *hidden:
			at = step.then
		}
		for _, one := range at {
			lose(one.model, one.in, one.place)
		}
	}
	eachHeldBy(all, lose)
}

// placesOf are the places of all structs that the steps know.
func placesOf(all []journal.Step) *memory.Places {
	for _, step := range all {
		if h, is := step.(*hidden); is {
			h.show()
		}
	}
	places := memory.NewPlaces()
	for i := len(all) - 1; i >= 0; i-- {
		switch step := all[i].(type) {
		case Holder:
			places.Add(step.Held())
		case Reader:
			step.EachRow(places.AddRead)
		case Placed:
			step.EachPlace(places.AddRead)
		case *copies:
			see(step.held, places)
		case *hidden:
			see(step.then, places)
		}
	}
	eachHeldBy(all, places.See)
	eachTried(all, func(t *tried) { // last: what the transaction had there itself counts first
		places.Add(&t.memory)
		EachHeld(&t.memory, places.See)
	})
	return places
}

// eachHeldBy visits what the structs of these steps hold by value in their associations.
func eachHeldBy(steps []journal.Step, visit visit) {
	for _, step := range steps {
		if holder, is := step.(Holder); is {
			EachHeld(holder.Held(), visit)
		}
	}
}
