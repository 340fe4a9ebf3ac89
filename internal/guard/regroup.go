package guard

import (
	"reflect"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// Holder is a step of a journal that has structs.
type Holder interface{ Held() *memory.Structs }

// Regroup finds out, before steps are taken back, where the structs of their transaction are by now: the caller may have moved
// them within its slices, and GORM may have copied them within an association.
func Regroup(undone, all []journal.Step, lost bool) {
	places, copied := placesOf(all)
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
		case *readInTransaction:
			read = true
		}
	}
	for _, step := range undone {
		if step, is := step.(*readInTransaction); is {
			step.forgetPlaces(places)
		}
	}
	if read && copied {
		eachHeldBy(all, func(m *model.Model, row reflect.Value) { loseCopyOfRead(m, row, places) })
	}
}

// placesOf are the places of all structs that the steps know, and whether GORM may have copied some of them since.
func placesOf(all []journal.Step) (places *memory.Places, copied bool) {
	for _, step := range all {
		if h, is := step.(*hidden); is {
			h.show()
			copied = true
		}
	}
	places = memory.NewPlaces()
	for i := len(all) - 1; i >= 0; i-- {
		switch step := all[i].(type) {
		case Holder:
			places.Add(step.Held())
		case *readInTransaction:
			step.seeIn(places)
		case *copies:
			step.seeIn(places)
		}
	}
	eachHeldBy(all, places.See)
	return places, copied
}

// eachHeldBy visits what the structs of these steps hold by value in their associations.
func eachHeldBy(steps []journal.Step, visit func(*model.Model, reflect.Value)) {
	for _, step := range steps {
		if holder, is := step.(Holder); is {
			eachHeld(holder.Held(), visit)
		}
	}
}

// forgetPlaces forgets what may have been read in another place since.
func (r *readInTransaction) forgetPlaces(places *memory.Places) {
	for i := 0; i < len(r.rows) && memory.HasStrays(); i++ {
		memory.Forget(r.rows[i])
	}
	if r.schema != nil {
		places.Forget(r.schema.ModelType, false)
	}
}

// Held implements Holder.
func (w *Write) Held() *memory.Structs { return &w.memory }

// Regroup implements journal.Regrouper.
func (w *Write) Regroup(undone, all []journal.Step, lost bool) { Regroup(undone, all, lost) }

// Regroup implements journal.Regrouper.
func (r *readInTransaction) Regroup(undone, all []journal.Step, lost bool) {
	Regroup(undone, all, lost)
}

// Stray implements journal.Straying.
func (w *Write) Stray() { w.memory.Stray() }

// Stray implements journal.Straying.
func (r *readInTransaction) Stray() {
	for _, row := range r.rows {
		memory.StrayRead(row)
	}
}

// recoverStrays restores what the statement is about to use, if ctx has ended the transaction that wrote it, and nobody else has
// restored it.
func (w *Write) recoverStrays() {
	for i := 0; i < w.memory.Count && memory.HasStrays(); i++ {
		memory.Recover(w.model, w.memory.Row(i))
	}
}

func (r *readInTransaction) seeIn(places *memory.Places) {
	r.scanned()
	for _, rows := range r.rows {
		statement.EachStruct(rows, func(row reflect.Value) {
			if s := r.schemaOf(row); s != nil {
				places.AddRead(model.OfSchema(r.db, s), row)
			}
		})
	}
}

// adopted is a struct that was given the version to which its row was moved.
type adopted struct{ memory memory.Structs }

// Held implements Holder.
func (a *adopted) Held() *memory.Structs { return &a.memory }

// Regroup implements journal.Regrouper.
func (a *adopted) Regroup(undone, all []journal.Step, lost bool) { Regroup(undone, all, lost) }

// Stray implements journal.Straying.
func (a *adopted) Stray() { a.memory.Stray() }

// Undo implements journal.Step, as does Lose.
func (a *adopted) Undo() { a.memory.Undo() }

// Lose puts back the version that the struct had, which is not newer.
func (a *adopted) Lose() { a.memory.Undo() }
