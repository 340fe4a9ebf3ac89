package guard

import (
	"reflect"
	"slices"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// Association(…).Delete copies the children that stay into a new slice, after its statement, and a rollback may not reach that slice. So the
// versions that the transaction has moved are out of sight while GORM copies: the copies count as not read. The next statement, or the end of the
// transaction, shows the versions again, in copies too if the transaction knows their owner.

// hidden is a step with structs whose versions are out of sight.
type hidden struct {
	all    []memory.Hidden
	read   []memory.Hidden   // what it has read: a copy of such has to stay unread
	owners []*memory.Structs // what the transaction knows that may hold copies
	shown  bool
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
	h, children := &hidden{}, copiedByDelete(db)
	j.Has(func(step journal.Step) bool {
		switch step := step.(type) {
		case Holder:
			held := step.Held()
			h.owners = append(h.owners, held)
			if m := held.Model(); m != nil && children[m.Schema.ModelType] {
				h.all = append(h.all, held.Hide()...)
			}
		case *readInTransaction:
			h.hideRead(step, children)
		}
		return false
	})
	if len(h.all)+len(h.read) == 0 {
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
			if (relation.FieldSchema == of || relation.JoinTable == of) && relation.Field.IndirectFieldType.Kind() == reflect.Slice && isHeldByValue(relation) {
				children[relation.FieldSchema.ModelType] = true
			}
		}
		return true
	})
	return children
}

func (h *hidden) hideRead(r *readInTransaction, children map[reflect.Type]bool) {
	for _, rows := range r.rows {
		statement.EachStruct(rows, func(row reflect.Value) {
			if children[row.Type()] && row.CanAddr() {
				if s := r.schemaOf(row); s != nil {
					h.read = append(h.read, memory.HideRow(model.OfSchema(r.db, s), row)...)
				}
			}
		})
	}
}

// showHidden shows what the statement before this one has hidden.
func showHidden(stmt *gorm.Statement) {
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

// show shows the structs again, and those of their copies that known owners hold.
func (h *hidden) show() {
	if h.shown {
		return
	}
	h.shown = true
	hiding.Add(-1)
	for _, one := range slices.Concat(h.all, h.read) {
		one.Show()
	}
	for _, owner := range h.owners {
		eachHeld(owner, func(m *model.Model, row reflect.Value) {
			for _, one := range h.all {
				one.ShowIn(m, row)
			}
		})
	}
}

// Undo implements journal.Step, as does Lose. Whoever moved a version takes it back.
func (h *hidden) Undo() { h.show() }

// Lose does the same.
func (h *hidden) Lose() { h.show() }

// Regroup implements journal.Regrouper.
func (h *hidden) Regroup(undone, all []journal.Step, lost bool) { Regroup(undone, all, lost) }
