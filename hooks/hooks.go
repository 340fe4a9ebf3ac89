// Package hooks lists where gormlock attaches its callbacks to the life of a GORM statement. All places are in one table, [Points]. Each place is
// right before one of GORM's callbacks. A callback that must only come after another one would be put after the commit by GORM.
//
// The life of a create, update or delete, with the places of this package in capitals:
//
//	scopes, schema ─► BEFORE BEGIN ─► begin ─► IN TRANSACTION ─► before hooks ─► BEFORE ASSOCIATIONS (not of a delete)
//	  ─► belongs-to associations ─► BEFORE WRITE ─► the statement ─► AFTER WRITE ─► has-one, has-many associations, after hooks
//	  ─► AFTER HOOKS ─► commit or rollback ─► AFTER END
//
// A query, row or raw statement has no transaction of its own: BEFORE READ ─► the statement ─► AFTER READ, and for a query
// its hooks ─► AFTER HOOKS.
//
// # Stability
//
// This package may still change before v1: names may move or go.
package hooks

import (
	"fmt"

	"gorm.io/gorm"
)

// Handlers are the functions to attach, one for each place. A nil handler attaches nothing.
type Handlers struct {
	Create, Update, Delete Write
	Query, Row, Raw        Read

	// Displaced is called, if it is not nil, before a handler that may not be in its place, because the named callback of GORM was removed, or
	// registered again, after Install. It reports whether the statement is refused. Then no handler except AfterEnd runs.
	Displaced func(db *gorm.DB, callback string) bool
}

// Write holds the handlers of a statement that GORM wraps in a transaction.
type Write struct {
	BeforeBegin        func(*gorm.DB) // the statement is parsed, GORM has not begun a transaction yet
	InTransaction      func(*gorm.DB) // the transaction is open, this statement has executed nothing in it
	BeforeAssociations func(*gorm.DB) // before hooks ran, associations it belongs to are about to be saved (create, update)
	BeforeWrite        func(*gorm.DB) // before hooks ran, associations it belongs to are saved
	AfterWrite         func(*gorm.DB) // the statement was executed, later associations and hooks have not run
	AfterHooks         func(*gorm.DB) // after hooks ran, the transaction is still open
	AfterEnd           func(*gorm.DB) // the transaction of this statement, if it had one, has ended, even by a panic

	// End replaces GORM's callback that commits or rolls back, if there is an AfterEnd, and must call it: end. A database that was opened with
	// SkipDefaultTransaction has no such callback.
	End func(db *gorm.DB, end func(*gorm.DB))
}

// Read holds the handlers of a statement that GORM runs without a transaction of its own.
type Read struct {
	BeforeRead func(*gorm.DB) // nothing has been executed by this statement
	AfterRead  func(*gorm.DB) // the statement was executed, its rows are scanned (query) or open (row)
	AfterHooks func(*gorm.DB) // after hooks ran (query only)
}

// Point is one place of attachment: the callback Name of the processor Op comes after After and before Before.
type Point struct {
	Op, Name, After, Before string

	handler func(*Handlers) func(*gorm.DB)
}

const (
	begin = "gorm:begin_transaction"
	end   = "gorm:commit_or_rollback_transaction"
)

// Points is the table of all places, in the order in which they are attached.
var Points = []Point{
	{Op: "create", Name: "gormlock:before_begin", Before: begin, handler: func(h *Handlers) func(*gorm.DB) { return h.Create.BeforeBegin }},
	{Op: "create", Name: "gormlock:in_transaction", After: begin, Before: "gorm:before_create", handler: func(h *Handlers) func(*gorm.DB) { return h.Create.InTransaction }},
	{Op: "create", Name: "gormlock:before_associations", After: "gorm:before_create", Before: "gorm:save_before_associations", handler: func(h *Handlers) func(*gorm.DB) { return h.Create.BeforeAssociations }},
	{Op: "create", Name: "gormlock:before_write", After: "gorm:save_before_associations", Before: "gorm:create", handler: func(h *Handlers) func(*gorm.DB) { return h.Create.BeforeWrite }},
	{Op: "create", Name: "gormlock:after_write", After: "gorm:create", Before: "gorm:save_after_associations", handler: func(h *Handlers) func(*gorm.DB) { return h.Create.AfterWrite }},
	{Op: "create", Name: "gormlock:after_hooks", After: "gorm:after_create", Before: end, handler: func(h *Handlers) func(*gorm.DB) { return h.Create.AfterHooks }},
	{Op: "create", Name: "gormlock:after_end", After: end, handler: func(h *Handlers) func(*gorm.DB) { return h.Create.AfterEnd }},

	{Op: "update", Name: "gormlock:before_begin", Before: begin, handler: func(h *Handlers) func(*gorm.DB) { return h.Update.BeforeBegin }},
	{Op: "update", Name: "gormlock:in_transaction", After: begin, Before: "gorm:setup_reflect_value", handler: func(h *Handlers) func(*gorm.DB) { return h.Update.InTransaction }},
	{Op: "update", Name: "gormlock:before_associations", After: "gorm:before_update", Before: "gorm:save_before_associations", handler: func(h *Handlers) func(*gorm.DB) { return h.Update.BeforeAssociations }},
	{Op: "update", Name: "gormlock:before_write", After: "gorm:save_before_associations", Before: "gorm:update", handler: func(h *Handlers) func(*gorm.DB) { return h.Update.BeforeWrite }},
	{Op: "update", Name: "gormlock:after_write", After: "gorm:update", Before: "gorm:save_after_associations", handler: func(h *Handlers) func(*gorm.DB) { return h.Update.AfterWrite }},
	{Op: "update", Name: "gormlock:after_hooks", After: "gorm:after_update", Before: end, handler: func(h *Handlers) func(*gorm.DB) { return h.Update.AfterHooks }},
	{Op: "update", Name: "gormlock:after_end", After: end, handler: func(h *Handlers) func(*gorm.DB) { return h.Update.AfterEnd }},

	{Op: "delete", Name: "gormlock:before_begin", Before: begin, handler: func(h *Handlers) func(*gorm.DB) { return h.Delete.BeforeBegin }},
	{Op: "delete", Name: "gormlock:in_transaction", After: begin, Before: "gorm:before_delete", handler: func(h *Handlers) func(*gorm.DB) { return h.Delete.InTransaction }},
	{Op: "delete", Name: "gormlock:before_write", After: "gorm:delete_before_associations", Before: "gorm:delete", handler: func(h *Handlers) func(*gorm.DB) { return h.Delete.BeforeWrite }},
	{Op: "delete", Name: "gormlock:after_write", After: "gorm:delete", Before: "gorm:after_delete", handler: func(h *Handlers) func(*gorm.DB) { return h.Delete.AfterWrite }},
	{Op: "delete", Name: "gormlock:after_hooks", After: "gorm:after_delete", Before: end, handler: func(h *Handlers) func(*gorm.DB) { return h.Delete.AfterHooks }},
	{Op: "delete", Name: "gormlock:after_end", After: end, handler: func(h *Handlers) func(*gorm.DB) { return h.Delete.AfterEnd }},

	{Op: "query", Name: "gormlock:before_read", Before: "gorm:query", handler: func(h *Handlers) func(*gorm.DB) { return h.Query.BeforeRead }},
	{Op: "query", Name: "gormlock:after_read", After: "gorm:query", Before: "gorm:preload", handler: func(h *Handlers) func(*gorm.DB) { return h.Query.AfterRead }},
	{Op: "query", Name: "gormlock:after_hooks", After: "gorm:after_query", handler: func(h *Handlers) func(*gorm.DB) { return h.Query.AfterHooks }},
	{Op: "row", Name: "gormlock:before_read", Before: "gorm:row", handler: func(h *Handlers) func(*gorm.DB) { return h.Row.BeforeRead }},
	{Op: "row", Name: "gormlock:after_read", After: "gorm:row", handler: func(h *Handlers) func(*gorm.DB) { return h.Row.AfterRead }},
	{Op: "raw", Name: "gormlock:before_read", Before: "gorm:raw", handler: func(h *Handlers) func(*gorm.DB) { return h.Raw.BeforeRead }},
	{Op: "raw", Name: "gormlock:after_read", After: "gorm:raw", handler: func(h *Handlers) func(*gorm.DB) { return h.Raw.AfterRead }},
}

// Install attaches the handlers to the callbacks of db. Callbacks are shared by all sessions of a database, and GORM's dbresolver initialises
// plugins again: attached callbacks stay as they are.
func Install(db *gorm.DB, handlers Handlers) error {
	if db == nil || db.Config == nil {
		return fmt.Errorf("gormlock: hooks: %w: a nil *gorm.DB, give it what gorm.Open returned", gorm.ErrInvalidDB)
	}
	lives := map[string]*life{}
	for _, p := range Points {
		handler := p.handler(&handlers)
		if handler == nil {
			continue
		}
		if lives[p.Op] == nil {
			lives[p.Op] = &life{displaced: handlers.Displaced}
		}
		if err := p.attach(db, handler, handlers.write(p.Op), lives[p.Op]); err != nil {
			return fmt.Errorf("gormlock: attach %s to %s: %w", p.Name, p.Op, err)
		}
	}
	return nil
}

// write has the handlers of a statement that has a transaction. Others have none.
func (h *Handlers) write(op string) Write {
	switch op {
	case "create":
		return h.Create
	case "update":
		return h.Update
	case "delete":
		return h.Delete
	}
	return Write{}
}

// anchor is the interface of GORM's callback processors, whose type is unexported.
type anchor[C any] interface {
	Get(string) func(*gorm.DB)
	Match(func(*gorm.DB) bool) C
	Replace(string, func(*gorm.DB)) error
}

// placed is what an anchor returns.
type placed[C any] interface {
	Before(string) C
	After(string) C
	Register(string, func(*gorm.DB)) error
}

func (p Point) attach(db *gorm.DB, handler func(*gorm.DB), w Write, l *life) error {
	callbacks := db.Callback()
	switch p.Op {
	case "create":
		return attach(db, callbacks.Create(), p, handler, w, l)
	case "update":
		return attach(db, callbacks.Update(), p, handler, w, l)
	case "delete":
		return attach(db, callbacks.Delete(), p, handler, w, l)
	case "query":
		return attach(db, callbacks.Query(), p, handler, w, l)
	case "row":
		return attach(db, callbacks.Row(), p, handler, w, l)
	default:
		return attach(db, callbacks.Raw(), p, handler, w, l)
	}
}

func attach[C placed[C]](db *gorm.DB, processor anchor[C], p Point, handler func(*gorm.DB), w Write, l *life) error {
	if processor.Get(p.Name) != nil {
		return nil
	}
	switch {
	case w.AfterEnd == nil:
	case p.Before == "" && p.After == end:
		if err := endEach(db, processor, w); err != nil {
			return err
		}
	default:
		handler = ending(handler, w.AfterEnd)
	}
	p.Before = p.anchor(func(name string) bool { return processor.Get(name) != nil })
	if p.After != end {
		handler = l.inPlace(handler)
	}
	l.processor, l.points = processor, append(l.points, p)
	place := processor.Match(l.sorted).Before(p.Before)
	if p.Before == "" {
		place = place.After(p.After)
	}
	return place.Register(p.Name, handler)
}
