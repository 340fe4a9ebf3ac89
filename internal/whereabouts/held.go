package whereabouts

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// EachHeld visits the structs that the structs of a statement hold by value in their associations, at any depth.
func EachHeld(s *memory.Structs, visit visit) {
	m := s.Model()
	if m == nil {
		return
	}
	w := heldWalk{visit: func(m *model.Model, row reflect.Value) { visit(m, s.In.Beside(m.Schema), row) }}
	for i := range s.Count {
		w.in(m, s.Row(i))
	}
}

// EachHeldIn does the same for one struct of a model and some of its associations.
func EachHeldIn(m *model.Model, row reflect.Value, of func(*schema.Relationship) bool, visit func(*model.Model, reflect.Value)) {
	w := heldWalk{visit: visit}
	for _, relation := range statement.OwnRelations(m.Schema) {
		if row.CanAddr() && of(relation) {
			w.of(relation, m, row)
		}
	}
}

// heldWalk visits what structs hold by value, each once: a slice may hold itself.
type heldWalk struct {
	visit func(*model.Model, reflect.Value)
	seen  map[heldAt]bool
}

// heldAt is the place of a struct: its first field has the same address.
type heldAt struct {
	of reflect.Type
	at uintptr
}

func (w *heldWalk) in(m *model.Model, row reflect.Value) {
	if !row.IsValid() || !row.CanAddr() {
		return
	}
	for _, relation := range statement.OwnRelations(m.Schema) {
		w.of(relation, m, row)
	}
}

func (w *heldWalk) of(relation *schema.Relationship, m *model.Model, row reflect.Value) {
	if place := statement.Place(relation.Field, row); IsHeldByValue(relation) && place.IsValid() {
		child := m.Of(relation.FieldSchema)
		statement.EachStruct(place, func(held reflect.Value) { w.see(child, held) })
	}
}

func (w *heldWalk) see(m *model.Model, row reflect.Value) {
	if !row.CanAddr() {
		return
	}
	at := heldAt{row.Type(), row.Addr().Pointer()}
	if w.seen[at] {
		return
	}
	if w.seen == nil {
		w.seen = map[heldAt]bool{}
	}
	w.seen[at] = true
	w.visit(m, row)
	w.in(m, row)
}

// owners is a step with structs that were read with their children, in which GORM may copy these.
type owners struct{ read memory.Structs }

// KeepOwners notes the structs of a query in a transaction that preloads children.
func KeepOwners(stmt *gorm.Statement, rows reflect.Value) {
	if len(stmt.Preloads) > 0 {
		keepOwners(stmt, rows)
	}
}

func keepOwners(stmt *gorm.Statement, rows reflect.Value) {
	if all := ownersIn(stmt, rows); all.Count > 0 {
		journal.Of(stmt).Keep(&owners{*all})
	}
}

// ownersIn are the structs of a statement, if their model has children by value.
func ownersIn(stmt *gorm.Statement, rows reflect.Value) *memory.Structs {
	all := &memory.Structs{}
	if stmt.Schema == nil || !rows.IsValid() {
		return all
	}
	all.In = memory.TableOf(stmt, stmt.Schema)
	if rows.Kind() != reflect.Pointer && rows.CanAddr() {
		rows = rows.Addr()
	}
	if m := model.Of(stmt.DB); m != nil && rows.CanInterface() && slices.ContainsFunc(statement.OwnRelations(stmt.Schema), IsHeldByValue) {
		all.Find(m, rows.Interface())
	}
	return all
}

// Held implements Holder.
func (o *owners) Held() *memory.Structs { return &o.read }

// Undo implements journal.Step, as does Lose: there is nothing to undo.
func (*owners) Undo() {}

// Lose does nothing.
func (*owners) Lose() {}

// copies is a step with structs that GORM copied before a statement of Association(…).Append. A rollback looks for what it undoes in these places
// too.
type copies struct {
	held []copied
	read map[rowOf]bool // the rows of which these may be copies that the transaction has read
}

type copied struct {
	model     *model.Model
	in        memory.Table
	place     reflect.Value
	committed column.Value // the version from before the transaction, if it is known
	known     bool
	mayBeRead bool // it may be a copy of a struct that the transaction has read
}

// strayAll takes copies astray.
func strayAll(all *journal.Astray, copies []copied) {
	for _, one := range copies {
		if memory.StraySeen(all, one.model, one.in, one.place); one.mayBeRead && all.Undone {
			memory.StrayRead(all, one.place)
		}
	}
}

func loosenAll(copies []copied) {
	for _, one := range slices.Backward(copies) {
		memory.LoosenRead(one.place)
	}
}

// copiesIn are the copies that the owner in an Append holds.
func copiesIn(stmt *gorm.Statement) *copies {
	c, db := &copies{read: map[rowOf]bool{}}, &gorm.DB{Config: stmt.Config}
	in := memory.TableOf(stmt, stmt.Schema)
	eachCopied(stmt, func(relation *schema.Relationship, place reflect.Value) {
		w := heldWalk{visit: func(m *model.Model, row reflect.Value) {
			c.held = append(c.held, copied{model: m, in: in.Beside(m.Schema), place: row})
		}}
		m := model.OfSchema(db, relation.FieldSchema)
		statement.EachStruct(place, func(row reflect.Value) { w.see(m, row) })
	})
	return c
}

// Stray implements journal.Straying, as does Loosen.
func (c *copies) Stray(all *journal.Astray) { strayAll(all, c.held) }

// Loosen lets go of the copies.
func (c *copies) Loosen() { loosenAll(c.held) }

// Undo implements journal.Step, as does Lose. The step that moved a version undoes it.
func (*copies) Undo() {}

// Lose does nothing either.
func (*copies) Lose() {}

// Regroup implements journal.Regrouper.
func (c *copies) Regroup(undone []journal.Step, all *journal.Ever, lost bool) {
	Regroup(undone, all, lost)
}
