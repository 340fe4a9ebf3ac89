package memory

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"sync"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
)

// ended is what is known of the structs of a transaction that its ctx has ended. It gives a struct that is used again what a rollback would leave in
// it. No other struct is touched, nor looked at: those of others may be in use.
type ended struct {
	of *journal.Ever // what the transaction did

	mu     sync.Mutex
	wrote  int64 // the moment of its first write
	all    []endedStep
	late   []reflect.Type // of structs that were read, when nobody could note what they are
	places *Places        // of all of them; nil: there may be more since
}

// endedStep is what a statement wrote or read; if neither, only where a struct is.
type endedStep struct {
	of    *Structs
	read  *Noted
	met   *Noted
	model *model.Model
	in    Table
	row   reflect.Value
}

// endedIn is the one that a step belongs to.
func endedIn(all *journal.Astray) *ended {
	if all.Known == nil {
		all.Known = &ended{of: all.Of}
	}
	e := all.Known.(*ended) //nolint:forcetypeassert // nothing else is
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wrote = all.Wrote
	return e
}

func (e *ended) add(step endedStep) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all, e.places = append(e.all, step), nil
}

// know finds out what is known of the places.
func (e *ended) know() *Places {
	if e.places != nil {
		return e.places
	}
	p, written := NewPlaces(), []*Structs{}
	p.Begin(e.wrote)
	for _, step := range e.all {
		switch {
		case step.of != nil:
			own := *step.of // a rollback of the whole may come, and has its own
			own.Places, own.undone = p, false
			written = append(written, &own)
			p.Add(&own)
		case step.read != nil:
			p.AddNoted(step.read)
		case step.met != nil:
			p.AddNoted(step.met)
		default:
			p.See(step.model, step.in, step.row)
		}
	}
	for _, s := range written {
		p.SeekLeft(s)
	}
	for _, step := range e.all {
		if step.read != nil {
			step.read.Seek(p)
		}
	}
	e.places = p
	return p
}

// takeBackIn takes back in a struct what the transaction did, the newest first. It reports false if the struct is none of those that it had there.
func (e *ended) takeBackIn(row reflect.Value) (known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.know()
	one := p.place(row)
	if one == nil {
		return false
	}
	p.alone, p.by, p.lost, one.found = one, map[rowOf][]*place{}, map[stateOfRow]bool{}, rowOf{}
	p.found(row)
	version := one.model.Column
	if version != nil && slices.Contains(e.late, row.Type()) && !p.isOld(one) && !p.isPutBack(one) {
		version.Write(row, version.Unread())
	}
	var back []*Structs
	defer func() {
		for _, s := range back {
			s.undone = false // in other places
		}
	}()
	for before := (moment{at: math.MaxInt64}); ; {
		e.loseRead(one, before)
		by, is := p.newest(one, before)
		if !is {
			break
		}
		known = known || by.of.standsFor(row, by.i)
		by.of.undoRow(by.i)
		by.of.undone, back = true, append(back, by.of)
		before = by.moment()
	}
	return known || version == nil || !version.Loaded(version.Read(row)) || p.isOld(one)
}

// moment is when a statement left the struct of a number. Those of one statement are taken back from the last on.
type moment struct {
	at int64
	i  int
}

func (k keeper) moment() moment { return moment{k.at(), k.i} }

func (m moment) compare(other moment) int {
	return cmp.Or(cmp.Compare(m.at, other.at), cmp.Compare(m.i, other.i))
}

// newest is the newest statement before a moment that may have left what is at a place.
func (p *Places) newest(one *place, before moment) (by keeper, is bool) {
	for _, all := range [][]keeper{one.keepers, p.undone[rowOf{one.row.Type(), one.key().spelling()}]} {
		for _, k := range all {
			if k.of != nil && k.moment().compare(before) < 0 && (!is || k.moment().compare(by.moment()) > 0) {
				by, is = k, true
			}
		}
	}
	return by, is
}

// loseRead makes unread what a place has, if the transaction has read that before a moment.
func (e *ended) loseRead(one *place, before moment) {
	for _, in := range one.tables {
		is := heldIn(one.model, one.row)
		if at, read := e.places.read[e.places.stateOf(one.row.Type(), in, is).spelling()]; read && at < before.at {
			e.places.lose(one.row.Type(), in, is)
		}
	}
}
