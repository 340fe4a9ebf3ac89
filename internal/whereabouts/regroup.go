package whereabouts

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// visit gets a struct of a model, and the table of its row.
type visit = func(m *model.Model, in memory.Table, row reflect.Value)

// Holder is a step of a journal that has structs.
type Holder interface{ Held() *memory.Structs }

// Reader is a step of a journal with what its transaction has read.
type Reader interface {
	EachRow(visit visit)        // the structs of models
	Noted() *memory.Noted       // what the structs were; nil: it is not known yet
	Seek(places *memory.Places) // says where they are now, and forgets what may have been read in another place since
}

// Placed is a step that only knows what its structs were.
type Placed interface{ Noted() *memory.Noted }

// Seeker is a step that looks for structs.
type Seeker interface {
	Seek(places *memory.Places) // says where they are now
}

// known is what is known about where the structs of a transaction are. Each rollback adds the steps since the one before.
type known struct {
	mu           sync.Mutex
	places       *memory.Places
	steps, tried int               // how many of them were added
	unfinished   []*memory.Structs // whose statement has not ended yet
	unread       []Placed          // of queries whose destination is not known yet
	owners       []*memory.Structs // structs that may hold others by value
	hidden       []*hidden
	copies       []*copies
}

// Regroup finds out, before steps are undone, where the structs of their transaction are now. The caller may have moved them within slices, and
// GORM may have copied them within an association.
func Regroup(undone []journal.Step, all *journal.Ever, lost bool) {
	if all.Places == nil {
		all.Places = &known{places: memory.NewPlaces()}
	}
	k := all.Places.(*known) //nolint:forcetypeassert // nothing else is
	k.mu.Lock()
	defer k.mu.Unlock()
	k.places.Begin(all.Wrote)
	k.follow(all)
	k.places.ForgetStrays(all)
	if lost {
		k.places.Forget(nil, true)
	}
	for _, step := range undone {
		if step, is := step.(Holder); is {
			step.Held().ForgetStrays()
			step.Held().Places = k.places
			k.places.SeekLeft(step.Held())
		}
	}
	read := false
	for _, step := range undone {
		if step, is := step.(Seeker); is {
			step.Seek(k.places)
		}
		_, is := step.(Reader)
		read = read || is
	}
	k.places.Find()
	if read {
		k.loseCopiesOfRead()
	}
}

// follow adds the new steps.
func (k *known) follow(all *journal.Ever) {
	unfinished, unread := k.unfinished, k.unread
	k.unfinished, k.unread = nil, nil
	for _, s := range unfinished {
		k.add(s)
	}
	for _, step := range unread {
		k.addNoted(step)
	}
	k.steps, k.tried = all.Since(k.steps, k.tried, k.meet)
	for _, h := range k.hidden {
		h.show()
		each(h.then, k.places.See)
	}
	k.eachHeld(k.places.See)
}

func (k *known) meet(step journal.Step) {
	switch step := step.(type) {
	case *tried:
		k.places.AddNoted(step.noted)
		k.own(step.memory)
	case *owners:
		k.places.Add(step.Held())
		k.own(step.Held())
	case *copies:
		k.copies = append(k.copies, step)
		each(step.held, k.places.See)
	case *hidden:
		k.hidden = append(k.hidden, step)
	case Holder:
		k.add(step.Held())
		k.own(step.Held())
	case Placed:
		k.addNoted(step)
	}
}

func (k *known) add(s *memory.Structs) {
	k.places.Add(s)
	if s.After == nil {
		k.unfinished = append(k.unfinished, s)
	}
}

func (k *known) addNoted(step Placed) {
	if step, is := step.(Reader); is {
		step.EachRow(k.places.See)
	}
	if noted := step.Noted(); noted != nil {
		k.places.AddNoted(noted)
	} else {
		k.unread = append(k.unread, step)
	}
}

// own adds structs that may hold others by value.
func (k *known) own(s *memory.Structs) {
	if m := s.Model(); m != nil && slices.ContainsFunc(statement.OwnRelations(m.Schema), IsHeldByValue) {
		k.owners = append(k.owners, s)
	}
}

// eachHeld visits the structs that the structs of all steps hold by value in their associations.
func (k *known) eachHeld(visit visit) {
	for _, s := range k.owners {
		EachHeld(s, visit)
	}
}

// loseCopiesOfRead makes copies unread that GORM may have made of structs that the transaction has read.
func (k *known) loseCopiesOfRead() {
	rows := map[rowOf]bool{}
	for _, step := range k.copies {
		maps.Copy(rows, step.read)
	}
	for _, step := range k.hidden {
		maps.Copy(rows, step.read)
	}
	if len(rows) == 0 {
		return
	}
	lose := func(m *model.Model, _ memory.Table, row reflect.Value) {
		if m.Column != nil && row.CanAddr() && rows[rowIn(m, row)] {
			m.Column.Write(row, m.Column.Unread())
		}
	}
	for _, step := range k.copies {
		each(step.held, lose)
	}
	for _, step := range k.hidden {
		each(step.then, lose)
	}
	k.eachHeld(lose)
}

func each(all []copied, visit visit) {
	for _, one := range all {
		visit(one.model, one.in, one.place)
	}
}
