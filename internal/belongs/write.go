package belongs

import (
	"maps"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/children"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/shared"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/unlinked"
)

// writing keeps what the structs of a statement belong to, from before GORM saves the associations until the statement has ended.
type writing struct {
	db      *gorm.DB
	model   *model.Model
	creates bool // an upsert
	from    source
	own     map[string]any // the caller's map
	held    []*holding
	emptied []statement.Association // removed from the structs by AfterWrite
}

// source is where the values of a statement come from.
type source int

const (
	itself source = iota // the structs that hold the associations
	named                // a map, to which GORM adds the foreign keys
	form                 // another struct, a pointer to a map, or a SET: GORM stores no foreign key of an association
)

const writingClause = "gormlock:belongs_writing"

// Build writes nothing. It makes writing a clause, so that the statement can carry it.
func (*writing) Build(clause.Builder) {}

func of(db *gorm.DB) *writing {
	w, _ := db.Statement.Clauses[writingClause].Expression.(*writing)
	return w
}

// BeforeAssociations finds out which associations of the structs the caller assigned. GORM must not store the keys of the others,
// which are only there because they were read. ofRoots refuses what is not allowed for roots. It runs before that.
func BeforeAssociations(ofRoots func(*gorm.DB)) func(*gorm.DB) {
	return func(db *gorm.DB) {
		unlinked.RefuseEmptied(db)
		refuseUnlinked(db)
		children.BeginGraph(db)
		children.RefuseTwins(db)
		ofRoots(db)
		guard.NoticeReferrers(db)
		beforeAssociations(db)
		keepKeys(db)
		children.NoticeArrived(db)
		shared.OwnKeys(db, false)
	}
}

// AfterAssociations checks that GORM has stored the keys that it gave to the structs of the associations.
func AfterAssociations(next func(*gorm.DB)) func(*gorm.DB) {
	return func(db *gorm.DB) {
		children.EndGraph(db)
		next(db)
	}
}

func beforeAssociations(db *gorm.DB) {
	m := model.Of(db)
	if db.Error != nil || m == nil || m.Err != nil || m.Column == nil || len(m.Schema.Relationships.BelongsTo) == 0 {
		return
	}
	stmt := db.Statement
	creates := slices.Contains(stmt.BuildClauses, "VALUES")
	if creates && !statement.HasUpsert(stmt) {
		return
	}
	if stmt.ReflectValue.Kind() == reflect.Struct && !holdsOwner(m, stmt.ReflectValue) {
		return
	}
	w := &writing{db: db, model: m, creates: creates}
	w.find()
	if len(w.held) == 0 {
		return
	}
	if !creates {
		w.readSource()
	}
	if err := w.judge(); err != nil {
		fault.Add(db, err)
		return
	}
	if own, isMap := stmt.Dest.(map[string]any); isMap {
		stmt.Dest = maps.Clone(own)
	}
	stmt.Clauses[writingClause] = clause.Clause{Expression: w}
}

// holdsOwner reports whether a struct holds a belongs-to association.
func holdsOwner(m *model.Model, row reflect.Value) bool {
	if row.Type() != m.Schema.ModelType {
		return false
	}
	for _, relation := range m.Schema.Relationships.BelongsTo {
		if place := statement.Place(relation.Field, row); place.IsValid() && !place.IsZero() {
			return true
		}
	}
	return false
}

// find finds the associations that the structs hold.
func (w *writing) find() {
	stmt := w.db.Statement
	var chosen statement.Chosen
	if len(stmt.Selects)+len(stmt.Omits) > 0 {
		chosen = statement.ChosenFor(stmt, w.creates)
	}
	statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) {
		if row.Type() != w.model.Schema.ModelType || !row.CanSet() {
			return
		}
		for _, relation := range w.model.Schema.Relationships.BelongsTo {
			place := statement.Place(relation.Field, row)
			if !place.IsValid() || place.IsZero() {
				continue
			}
			h := &holding{relation: relation, row: row, place: place, was: statement.HeldBy(row, relation, place)}
			h.saved, h.explicit = chosen.Has(relation.Name), chosen.Names(relation.Name)
			h.written = w.creates && h.isUpserted(stmt)
			if w.creates && !h.written {
				continue
			}
			h.eachKey(func(key *schema.Field, _ *schema.Reference) {
				h.selected = h.selected || chosen.Names(key.DBName)
				h.direct = h.direct || !h.saved && chosen.Has(key.DBName)
				if place := statement.Place(key, row); place.IsValid() {
					h.keys = append(h.keys, keep(place))
				}
			})
			w.held = append(w.held, h)
		}
	})
}

// eachKey visits the fields of the foreign key, which GORM sets.
func (h *holding) eachKey(visit func(key *schema.Field, ref *schema.Reference)) {
	for _, ref := range h.relation.References {
		if !ref.OwnPrimaryKey {
			visit(ref.ForeignKey, ref)
		}
	}
}

// isUpserted reports whether an upsert writes the foreign key into existing rows.
func (h *holding) isUpserted(stmt *gorm.Statement) (is bool) {
	conflict, _ := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	h.eachKey(func(key *schema.Field, _ *schema.Reference) {
		is = is || conflict.UpdateAll || slices.ContainsFunc(conflict.DoUpdates, func(a clause.Assignment) bool { return a.Column.Name == key.DBName })
	})
	return is
}

func (w *writing) readSource() {
	stmt := w.db.Statement
	own, isMap := stmt.Dest.(map[string]any)
	_, isSet := stmt.Clauses["SET"]
	switch {
	case isSet:
		w.from = form
	case isMap:
		w.from, w.own = named, own
	case !statement.SamePointer(stmt.Dest, stmt.Model):
		w.from = form
		if pointer, is := stmt.Dest.(*map[string]any); is && pointer != nil {
			w.own = *pointer
		}
	}
}

// BeforeWrite runs after GORM has set all foreign keys. It restores those of associations that the caller did not assign.
func BeforeWrite(db *gorm.DB) {
	beforeWrite(db)
	children.RefuseLost(db)
	refuseOtherKeys(db)
}

func beforeWrite(db *gorm.DB) {
	w := of(db)
	if w == nil || db.Error != nil {
		return
	}
	for _, h := range w.held {
		if h.saved && (!h.assigned || w.from == form) {
			for _, key := range h.keys {
				key.putBack()
			}
		}
	}
	if w.from == named {
		w.restoreMap()
	}
	for _, h := range w.held {
		if h.saved && h.assigned && w.from != form {
			w.assign(h)
		}
	}
	for _, h := range w.held { // associations may share a column
		if (h.saved && h.assigned && w.from != form || h.fits && !h.assigned && !h.place.IsZero()) && statement.KeyOfOther(h.relation, h.place) != statement.LinkOf(h.relation, h.row) {
			fault.Add(db, w.contradicts(h))
			return
		}
	}
	w.findWritten()
	if j := journal.Of(db.Statement); j != nil {
		j.Keep(w) // kept before the statement's own step, so that it is undone after that
	}
}

// restoreMap removes the foreign keys from the map that the caller did not put there, and restores the others.
func (w *writing) restoreMap() {
	values, _ := w.db.Statement.Dest.(map[string]any)
	for _, h := range w.held {
		h.eachKey(func(key *schema.Field, _ *schema.Reference) {
			if value, is := w.own[key.DBName]; is {
				values[key.DBName] = value
			} else if h.saved {
				delete(values, key.DBName)
			}
		})
	}
}

// assign gives the row the key of its association.
func (w *writing) assign(h *holding) {
	values, _ := w.db.Statement.Dest.(map[string]any)
	h.eachKey(func(key *schema.Field, ref *schema.Reference) {
		value, _ := ref.PrimaryKey.ValueOf(w.db.Statement.Context, reflect.Indirect(h.place))
		if err := key.Set(w.db.Statement.Context, h.row, value); err != nil {
			fault.Add(w.db, err)
		}
		if _, is := statement.Named(w.own, key); w.from == named && !is {
			values[key.DBName] = value
		}
	})
}

// findWritten finds out which of the assigned foreign keys the statement writes.
func (w *writing) findWritten() {
	isStale := func(h *holding) bool { return h.stale && !h.written }
	if !slices.ContainsFunc(w.held, isStale) {
		return
	}
	set := statement.Assignments(w.db.Statement)
	for _, h := range w.held {
		h.eachKey(func(key *schema.Field, _ *schema.Reference) {
			h.written = h.written || slices.ContainsFunc(set, func(a clause.Assignment) bool { return a.Column.Name == key.DBName })
		})
	}
}

// AfterWrite empties associations to which the written rows no longer belong. Otherwise the next save would move the rows
// back.
func AfterWrite(db *gorm.DB) {
	w := of(db)
	if w == nil || db.Error != nil || db.DryRun {
		return
	}
	for _, h := range w.held {
		switch {
		case h.place.IsZero(): // already emptied: the returned row belongs to another one
		case statement.Refers(h.relation, h.row, h.place):
			continue
		case h.fits || h.stale && h.written || statement.LinkOf(h.relation, h.row) != h.key:
			h.place.SetZero()
		default:
			continue
		}
		link := h.key
		if h.fits {
			link = h.was.Key()
		}
		w.emptied = append(w.emptied, h.was.By(link))
	}
}

// AfterEnd restores the associations if the statement failed. A rollback of the transaction restores them by Undo.
func AfterEnd(db *gorm.DB) {
	unlinked.AfterEnd(db)
	w := of(db)
	if w == nil {
		return
	}
	delete(db.Statement.Clauses, writingClause)
	if db.Error != nil && !journal.Stays(db.Statement) {
		w.Undo()
	}
}

// Undo implements journal.Step, as does Lose. By then the foreign keys are restored.
func (w *writing) Undo() {
	for _, association := range w.emptied {
		association.PutBack()
	}
}

// Lose leaves the associations empty, because the foreign keys may differ from the old ones.
func (w *writing) Lose() {}
