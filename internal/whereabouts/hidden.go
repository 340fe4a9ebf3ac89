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

// After its statement, Association(…).Append copies what it has stored to the structs that the caller gave it, and Association(…).Delete copies
// the children that stay into a new slice. No rollback finds such copies. So a version that a rollback takes back is out of sight while GORM
// copies: the copies count as not read, or have the version of before. The next statement, or the end of the transaction, shows it again.

// hidden is a step with structs whose versions are out of sight. It also tells that GORM may have copied others.
type hidden struct {
	all  []veil
	call *string // what the Append selects, which tells it from others
	over bool    // they were shown
}

// hiding is how many steps have something to show.
var hiding atomic.Int64

// hideUntilNext hides until the next statement.
func (h *hidden) hideUntilNext(stmt *gorm.Statement) {
	h.hide()
	hiding.Add(1)
	if j := journal.Of(stmt); j.Keep(h) {
		j.AfterCommit(h.show)
	} else {
		h.show()
	}
}

func (h *hidden) hide() {
	for i := range h.all {
		h.all[i].hide()
	}
}

// show shows the structs again.
func (h *hidden) show() {
	if h.over {
		return
	}
	h.over = true
	hiding.Add(-1)
	for i := range h.all {
		h.all[i].show()
	}
}

// Undo implements journal.Step, as does Lose. Whoever moved a version takes it back.
func (h *hidden) Undo() { h.show() }

// Lose does the same.
func (h *hidden) Lose() { h.show() }

// Regroup implements journal.Regrouper.
func (h *hidden) Regroup(undone, all []journal.Step, lost bool) { Regroup(undone, all, lost) }

// ShowHidden shows what the statement before this one has hidden.
func ShowHidden(stmt *gorm.Statement) {
	for _, h := range hiddenIn(stmt) {
		h.show()
	}
}

// hiddenIn are the steps of the transaction that have something to show.
func hiddenIn(stmt *gorm.Statement) (all []*hidden) {
	if hiding.Load() == 0 {
		return nil
	}
	j := journal.Of(stmt)
	if j == nil {
		return nil
	}
	j.Has(func(step journal.Step) bool {
		if h, is := step.(*hidden); is && !h.over {
			all = append(all, h)
		}
		return false
	})
	return all
}

// hideFromCopies hides the versions of the structs that GORM is about to copy, after a statement of Association(…).Delete. A rollback looks for
// the copies in the structs that the transaction has written, or read with their children. It does not look in others.
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
	add := func(m *model.Model, row reflect.Value) {
		if v, has := veilOf(m, row); has && children[row.Type()] && !known[row.Addr().Pointer()] {
			h.all = append(h.all, v)
		}
	}
	j.Has(func(step journal.Step) bool {
		switch step := step.(type) {
		case Holder:
			eachMoved(step.Held(), add)
		case Reader:
			step.EachRow(add)
		}
		return false
	})
	if len(children) > 0 {
		h.hideUntilNext(stmt)
	}
}

// eachMoved visits the structs of a statement that have the version to which it has moved them.
func eachMoved(s *memory.Structs, visit func(*model.Model, reflect.Value)) {
	m := s.Model()
	for i := 0; i < s.Count && m.Column != nil && !s.IsUndone(); i++ {
		row, was, after := s.Row(i), s.Was(i), s.Of(s.After, i)
		if !row.IsValid() || !after.IsValid() {
			continue
		}
		if now := m.Column.Read(row); now.Equal(m.Column.Read(after)) && (!was.IsValid() || !now.Equal(m.Column.Read(was))) {
			visit(m, row)
		}
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
