package reading

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// placed has structs that a transaction has read before it wrote anything. A rollback does not change them. But the caller may move later structs
// of the transaction into their places, for example by sorting a list, and a rollback must find those there.
type placed struct {
	read  *Read
	noted *memory.Noted
	early *memory.Noted // what was noted before the step was in the journal
}

// keepPlaces notes where a query has put structs of models.
func keepPlaces(stmt *gorm.Statement, rows reflect.Value) {
	of := rows.Type()
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Array {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct && of.Kind() != reflect.Interface {
		return
	}
	if stmt.Schema != nil && of == stmt.Schema.ModelType && !model.NeedsJournal(stmt.DB, stmt.Schema) {
		return // neither it nor what it can hold has a tag
	}
	p := &placed{read: readOf(stmt)}
	if of.Kind() == reflect.Struct && (scans(reflect.Zero(of)) || p.read.walkedIn(reflect.New(of).Elem()).isEmpty()) {
		return
	}
	p.note(rows)
	p.noteOutgrown(stmt)
	if p.early = p.noted; !p.noted.IsEmpty() {
		journal.Of(stmt).Keep(p)
	}
}

func (p *placed) note(rows reflect.Value) {
	p.noted = memory.NewNoted()
	p.noteMore(rows)
}

func (p *placed) noteMore(rows reflect.Value) {
	w := versionedWalk{read: p.read, visit: p.noted.Note, forms: true}
	statement.EachStruct(rows, w.in)
}

// scannedInto notes what Scan has filled.
func (p *placed) scannedInto(dest reflect.Value) bool {
	p.note(dest)
	p.early = p.noted
	return !p.noted.IsEmpty()
}

// Noted implements whereabouts.Placed.
func (p *placed) Noted() *memory.Noted {
	if stmt := p.read.later; p.noted == nil && p.read.scanned() {
		p.note(reflect.ValueOf(stmt.Dest))
	}
	return p.noted
}

// Undo implements journal.Step, as does Lose.
func (p *placed) Undo() { p.Lose() }

// Lose lets go of the structs: the rollback of other steps has found what was moved there.
func (p *placed) Lose() {
	if p.early != nil {
		p.early.ForgetStrays()
	}
}

// Stray implements journal.Straying, as does Loosen.
func (p *placed) Stray(all *journal.Astray) {
	if p.early != nil {
		p.early.Stray(all)
	}
}

// Loosen lets go of the structs.
func (p *placed) Loosen() {
	if p.early != nil {
		p.early.Loosen()
	}
}

// versionedWalk visits the structs of versioned models in a result: the rows, and the structs that are joined to them.
type versionedWalk struct {
	read  *Read
	visit func(*model.Model, memory.Table, reflect.Value)
	part  func(*model.Model, memory.Table, reflect.Value) // called instead of visit for a form and its parts
	forms bool                                            // visit structs that are not of the query's model too, and embedded structs
	deep  int                                             // how many forms the walk is in
	last  walked
	kinds map[reflect.Type]walked
	seen  map[any]bool
}

// walked describes the structs of a type.
type walked struct {
	of        reflect.Type
	model     *model.Model // nil: it has no version
	relations []*schema.Relationship
	embedded  []int // the fields that are structs of models
}

func (k walked) isEmpty() bool { return k.model == nil && len(k.relations)+len(k.embedded) == 0 }

func (w *versionedWalk) kindOf(row reflect.Value) walked {
	of := row.Type()
	if of == w.last.of {
		return w.last // as in the one before
	}
	kind, known := w.kinds[of]
	if !known {
		kind = w.read.walkedIn(row)
		if w.kinds == nil {
			w.kinds = map[reflect.Type]walked{}
		}
		w.kinds[of] = kind
	}
	w.last = kind
	return kind
}

// walkedIn describes a struct that was read.
func (r *Read) walkedIn(row reflect.Value) walked {
	kind := walked{of: row.Type()}
	own := r.schemaOf(row)
	if model.NeedsJournal(r.db, own) {
		if m := model.OfSchema(r.db, own); m.Column != nil {
			kind.model = m
		}
		for _, relation := range statement.OwnRelations(own) {
			if model.NeedsJournal(r.db, relation.FieldSchema) {
				kind.relations = append(kind.relations, relation)
			}
		}
	}
	for i := range row.NumField() {
		field := kind.of.Field(i)
		if own != nil && slices.ContainsFunc(statement.OwnRelations(own), func(r *schema.Relationship) bool { return r.Name == field.Name }) {
			continue
		}
		if field.IsExported() && field.Type.Kind() == reflect.Struct && slices.ContainsFunc(versioned(r.db), func(m *model.Model) bool { return m.Schema.ModelType == field.Type }) {
			kind.embedded = append(kind.embedded, i)
		}
	}
	return kind
}

func (w *versionedWalk) in(row reflect.Value) { w.see(row, false) }

func (w *versionedWalk) joined(row reflect.Value) { w.see(row, true) }

// see visits a struct. joined means that its model may differ from the query's.
func (w *versionedWalk) see(row reflect.Value, joined bool) {
	if !row.CanAddr() {
		return
	}
	kind := w.kindOf(row)
	if len(kind.relations) > 0 {
		at := row.Addr().Interface()
		if w.seen[at] {
			return
		}
		if w.seen == nil {
			w.seen = map[any]bool{}
		}
		w.seen[at] = true
	}
	own := kind.model != nil && kind.model.Schema == w.read.schema
	if kind.model != nil && (joined || own || w.forms) {
		visit := w.visit
		if w.part != nil && !joined && (!own || w.deep > 0) {
			visit = w.part
		}
		visit(kind.model, w.read.tableOf(kind.model.Schema), row)
	}
	for _, relation := range kind.relations {
		if place := statement.Place(relation.Field, row); place.IsValid() && (w.read.again == nil || w.read.mayJoin(relation)) {
			statement.EachStruct(place, w.joined)
		}
	}
	w.deep++
	for i := 0; i < len(kind.embedded) && w.forms; i++ {
		w.in(row.Field(kind.embedded[i]))
	}
	w.deep--
}

// note notes what the structs of models hold that were read, in whole or in part.
func (r *Read) note(whole bool) *memory.Noted {
	noted := memory.NewNoted()
	if whole {
		noted = memory.NewRead()
	}
	w := versionedWalk{read: r, visit: noted.Note, part: noted.NotePart, forms: true}
	for _, row := range r.rows {
		w.in(row)
	}
	return noted
}
