package whereabouts

import (
	"reflect"
	"sync"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// After its statement, Association(…).Append copies the stored structs to those that the caller gave. Association(…).Delete copies the remaining
// children into a new slice. No rollback finds such copies. So while GORM copies, a version that a rollback would undo is out of sight: the copies
// count as not read, or have the version from before. The next statement, or the end of the transaction, shows the version again.

// hidden is a step with structs whose versions are out of sight. It also says that GORM may have copied others.
type hidden struct {
	all    []veil
	owners []owner        // the structs in which a rollback finds the copies
	call   *gorm.Config   // of the Append: each call has its own
	read   map[rowOf]bool // of a Delete: the rows that the transaction has read and whose structs GORM may have copied
	over   bool           // the versions were shown again
	mu     sync.Mutex
	then   []copied // where the owners had their structs at that time: the caller may have pointers there when GORM copies again
}

// hiding is how many steps have something to show.
var hiding atomic.Int64

// hideUntilNext hides the versions until the next statement.
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

// show shows the versions again.
func (h *hidden) show() {
	if h.over {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	hiding.Add(-1)
	for i := range h.all {
		h.all[i].show()
	}
	for _, o := range h.owners {
		EachHeld(o.structs, func(m *model.Model, in memory.Table, row reflect.Value) {
			is := rowIn(m, row)
			h.then = append(h.then, copied{model: m, in: in, place: row, mayBeRead: h.read[is]})
			had := o.had[is]
			for i := range had {
				if o.counts[is] == 1 || had[i].looksLike(row) {
					had[i].showIn(row)
				}
			}
		})
	}
}

// owner is one of several structs that hold others by value, with what it had when the versions were hidden.
type owner struct {
	structs *memory.Structs
	had     map[rowOf][]veil
	counts  map[rowOf]int // how many structs each row had
}

func newOwner(structs *memory.Structs) owner {
	return owner{structs, map[rowOf][]veil{}, map[rowOf]int{}}
}

func (o *owner) count(m *model.Model, _ memory.Table, row reflect.Value) {
	o.counts[rowIn(m, row)]++
}

func (o *owner) add(v veil) {
	v.keepLooks()
	is := rowIn(v.model, v.row)
	o.had[is] = append(o.had[is], v)
}

// Stray implements journal.Straying, as does Loosen.
func (h *hidden) Stray(all *journal.Astray) {
	h.mu.Lock()
	defer h.mu.Unlock()
	strayAll(all, h.then)
}

// Loosen lets go of the structs.
func (h *hidden) Loosen() {
	h.mu.Lock()
	defer h.mu.Unlock()
	loosenAll(h.then)
}

// Undo implements journal.Step, as does Lose. The step that moved a version undoes it.
func (h *hidden) Undo() { h.show() }

// Lose does the same.
func (h *hidden) Lose() { h.show() }

// Regroup implements journal.Regrouper.
func (h *hidden) Regroup(undone []journal.Step, all *journal.Ever, lost bool) {
	Regroup(undone, all, lost)
}

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

// hideFromCopies hides the versions of the structs that GORM is about to copy after a statement of Association(…).Delete. They are shown again in
// the copies too, if these are in structs that the transaction has written, or read with their children. A rollback looks for them there, and
// nowhere else.
func hideFromCopies(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || db.DryRun || stmt.Schema == nil {
		return
	}
	j := journal.Of(stmt)
	if j == nil || j.Written() == 0 || !statement.InAssociationDelete() {
		return
	}
	h, children := &hidden{read: map[rowOf]bool{}}, copiedByDelete(db)
	if len(children) == 0 {
		return
	}
	first := firstStatesOf(stmt)
	for is, state := range first {
		if state.read && !state.loaded() && children[is.of] {
			h.read[is] = true
		}
	}
	moved := func(m *model.Model, row reflect.Value) (v veil, is bool) {
		if m == nil || !row.IsValid() || !row.CanAddr() || !children[row.Type()] {
			return veil{}, false
		}
		v, has := veilOf(m, row)
		state := first[rowIn(m, row)]
		return v, has && state != nil && state.differs(v.is)
	}
	add := func(m *model.Model, _ memory.Table, row reflect.Value) {
		if v, is := moved(m, row); is {
			h.all = append(h.all, v)
		}
	}
	j.Ever(func(step journal.Step) {
		switch step := step.(type) {
		case *copies:
			for _, one := range step.held {
				add(one.model, one.in, one.place)
			}
		case Holder:
			held := step.Held()
			for i := range held.Count {
				add(held.Model(), held.In, held.Row(i))
			}
			o := newOwner(held) // in a tree, a child can be an owner too
			EachHeld(held, func(m *model.Model, in memory.Table, row reflect.Value) {
				o.count(m, in, row)
				if v, is := moved(m, row); is {
					h.all = append(h.all, v)
					o.add(v)
				}
			})
			if len(o.counts) > 0 {
				h.owners = append(h.owners, o)
			}
		case Reader:
			step.EachRow(add)
		}
	})
	h.hideUntilNext(stmt)
}

// copiedByDelete are the types of children that the statement may unlink and that owners hold in slices, by value.
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

// addCopied adds the type of a child, and of the structs within it, because they are copied with it.
func addCopied(types map[reflect.Type]bool, s *schema.Schema) {
	if types[s.ModelType] {
		return
	}
	types[s.ModelType] = true
	statement.Await(s)
	for _, relation := range statement.OwnRelations(s) {
		if relation.Field.FieldType.Kind() == reflect.Struct {
			addCopied(types, relation.FieldSchema)
		}
	}
}
