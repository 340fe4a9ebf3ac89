package whereabouts

import (
	"reflect"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// Association(…).Delete copies the children that stay into a new slice, after its statement. A rollback looks for them in the structs that the
// transaction has written, or read with their children. What other structs hold is out of sight while GORM copies, if the transaction has moved its
// version: the copies count as not read. The next statement, or the end of the transaction, shows the versions again.

// hidden is a step with structs whose versions are out of sight. It also tells that GORM may have copied others.
type hidden struct {
	all   []memory.Hidden
	shown bool
}

// hiding is how many such steps there are.
var hiding atomic.Int64

// hideFromCopies hides the versions of the structs that GORM is about to copy, after a statement of Association(…).Delete.
func hideFromCopies(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || db.DryRun || stmt.Schema == nil {
		return
	}
	j := journal.Of(stmt)
	if j == nil || j.Written() == 0 || !statement.InAssociationDelete() {
		return
	}
	h, children, known := &hidden{}, copiedByDelete(db), map[uintptr]bool{}
	j.Has(func(step journal.Step) bool {
		holder, is := step.(Holder)
		if is && !children[holder.Held().Type()] { // these are copied themselves
			EachHeld(holder.Held(), func(_ *model.Model, row reflect.Value) { known[row.Addr().Pointer()] = true })
		}
		return false
	})
	hides := func(row reflect.Value) bool {
		return row.CanAddr() && children[row.Type()] && !known[row.Addr().Pointer()]
	}
	j.Has(func(step journal.Step) bool {
		switch step := step.(type) {
		case Holder:
			h.all = append(h.all, step.Held().Hide(hides)...)
		case Reader:
			step.EachRow(func(m *model.Model, row reflect.Value) {
				if hides(row) {
					h.all = append(h.all, memory.HideRow(m, row)...)
				}
			})
		}
		return false
	})
	if len(children) == 0 {
		return
	}
	hiding.Add(1)
	if j.Keep(h) {
		j.AfterCommit(h.show)
	} else {
		h.show()
	}
}

// copiedByDelete are the types of the children that the statement may unlink, and that owners hold in slices, by value.
func copiedByDelete(db *gorm.DB) map[reflect.Type]bool {
	of, children := db.Statement.Schema, map[reflect.Type]bool{}
	statement.EachParsed(db, func(s *schema.Schema) bool {
		for _, relation := range statement.OwnRelations(s) {
			if (relation.FieldSchema == of || relation.JoinTable == of) && relation.Field.IndirectFieldType.Kind() == reflect.Slice && IsHeldByValue(relation) {
				addCopied(children, relation.FieldSchema)
			}
		}
		return true
	})
	return children
}

// addCopied adds the type of a child, and of the structs within it, which are copied with it.
func addCopied(types map[reflect.Type]bool, s *schema.Schema) {
	if types[s.ModelType] {
		return
	}
	types[s.ModelType] = true
	for _, relation := range statement.OwnRelations(s) {
		if relation.Field.FieldType.Kind() == reflect.Struct {
			addCopied(types, relation.FieldSchema)
		}
	}
}

// ShowHidden shows what the statement before this one has hidden.
func ShowHidden(stmt *gorm.Statement) {
	if hiding.Load() == 0 {
		return
	}
	j := journal.Of(stmt)
	if j == nil {
		return
	}
	var all []*hidden
	j.Has(func(step journal.Step) bool {
		if h, is := step.(*hidden); is {
			all = append(all, h)
		}
		return false
	})
	for _, h := range all {
		h.show()
	}
}

// show shows the structs again.
func (h *hidden) show() {
	if h.shown {
		return
	}
	h.shown = true
	hiding.Add(-1)
	for _, one := range h.all {
		one.Show()
	}
}

// Undo implements journal.Step, as does Lose. Whoever moved a version takes it back.
func (h *hidden) Undo() { h.show() }

// Lose does the same.
func (h *hidden) Lose() { h.show() }

// Regroup implements journal.Regrouper.
func (h *hidden) Regroup(undone, all []journal.Step, lost bool) { Regroup(undone, all, lost) }
