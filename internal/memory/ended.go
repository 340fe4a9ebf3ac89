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

// ended is what is known about the structs of a transaction that its ctx has ended. When one of them is used again, it gets what a rollback would
// leave in it. The others are neither touched nor read, because another goroutine may use them.
type ended struct {
	of *journal.Ever // what the transaction did

	mu     sync.Mutex
	wrote  int64 // the moment of its first write
	all    []endedStep
	late   []reflect.Type // types of structs that were read after the transaction was over: nobody noted which structs
	places *Places        // what know has found out; nil if a step was added since
}

// endedStep is what one statement did: it wrote, read or met structs. If all are nil, only the place of a struct is known.
type endedStep struct {
	of    *Structs
	read  *Noted
	met   *Noted
	model *model.Model
	in    Table
	row   reflect.Value
}

// endedIn returns what is known about the transaction.
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

// know finds out which places had structs, and what was in them.
func (e *ended) know() *Places {
	if e.places != nil {
		return e.places
	}
	p, written := NewPlaces(), []*Structs{}
	p.Begin(e.wrote)
	p.all = e.of
	for _, step := range e.all {
		switch {
		case step.of != nil:
			own := *step.of // a copy: Rollback may still be called, and undoes the original
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

// takeBackIn undoes what the transaction did to one struct, the newest change first. It reports false if the transaction did not have the struct in
// this place.
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
	version, used := one.model.Column, p.used(row)
	if known = used > 0; version != nil && !known && slices.Contains(e.late, row.Type()) && !p.isOld(one) && !p.isPutBack(one) {
		version.Write(row, version.Unread())
	}
	var back []*Structs
	defer func() {
		for _, s := range back {
			s.undone = false // other structs of the statement are not undone
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

// isReadSince reports whether the program has read a struct outside of transactions since this one last had it there.
func (e *ended) isReadSince(row reflect.Value) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.know()
	one := p.place(row)
	if one == nil || slices.Contains(e.late, row.Type()) {
		return false
	}
	return one.readOutside() > 0
}

// moment orders the times at which structs were left: by their statement, and within a statement by their number.
type moment struct {
	at int64
	i  int
}

func (k keeper) moment() moment { return moment{k.at(), k.i} }

func (m moment) compare(other moment) int {
	return cmp.Or(cmp.Compare(m.at, other.at), cmp.Compare(m.i, other.i))
}

// newest is the last statement before a moment that may have left the content of a place.
func (p *Places) newest(one *place, before moment) (by keeper, is bool) {
	used := p.used(one.row)
	for _, all := range [][]keeper{one.keepers, p.undone[rowOf{one.row.Type(), one.key().spelling()}]} {
		for _, k := range all {
			if k.of != nil && k.at() > used && k.moment().compare(before) < 0 && (!is || k.moment().compare(by.moment()) > 0) {
				by, is = k, true
			}
		}
	}
	return by, is
}

// loseRead makes a place unread if the transaction read its content before a moment.
func (e *ended) loseRead(one *place, before moment) {
	for _, in := range one.tables {
		is := heldIn(one.model, one.row)
		if at, read := e.places.read[e.places.stateOf(one.row.Type(), in, is).spelling()]; read && at < before.at && !e.places.IsUsedSince(one.row, at) {
			e.places.lose(one.row.Type(), in, is)
		}
	}
}
