package guard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/statement"
)

// refuseUnknown fails a write whose Select names what the model does not have: GORM would leave it out, and write nothing if there
// is nothing else.
func (w *Write) refuseUnknown(db *gorm.DB) {
	if db.Error != nil || w.intent.Touches() {
		return
	}
	if len(db.Statement.Selects) == 0 || slices.Equal(db.Statement.Selects, []string{"*"}) {
		return
	}
	if err := cmp.Or(w.childrenUnlinked(db.Statement), w.ownersUnlinked(db.Statement)); err != nil && w.op != OpDelete && !statement.InAppend() {
		w.refuseBefore(db, err)
		return
	}
	for _, name := range db.Statement.Selects {
		if of, is := w.within(db.Statement, name); is {
			w.refuseBefore(db, fmt.Errorf("gormlock: %s: Select names %q without %q, so GORM would not save that association: name both",
				w.model.Schema.Name, name, of))
			return
		}
		if !w.knows(db.Statement, name) && !statement.InAppend() { // for whose sake GORM names foreign keys of the other model too
			w.refuseBefore(db, fmt.Errorf("gormlock: %s: Select names %q, which is neither a column nor an association, so GORM would leave it out: name each by itself, as in Select(\"a\", \"b\")",
				w.model.Schema.Name, name))
			return
		}
	}
}

// refuseBefore fails a write before anything of it is stored.
func (*Write) refuseBefore(db *gorm.DB, err error) {
	journal.DoomWithParent(db, err)
	fault.Add(db, err)
}

// childrenUnlinked returns the error of a Select that names columns of children, and not their foreign key: they would be stored without.
func (p *plan) childrenUnlinked(stmt *gorm.Statement) error {
	for _, relation := range slices.Concat(p.model.Schema.Relationships.HasOne, p.model.Schema.Relationships.HasMany) {
		named := func(in string) bool { return slices.Contains(stmt.Selects, relation.Name+"."+in) }
		if !slices.ContainsFunc(stmt.Selects, func(name string) bool { return strings.HasPrefix(name, relation.Name+".") }) || named("*") {
			continue
		}
		for _, ref := range relation.References {
			if key := ref.ForeignKey; !named(key.Name) && !named(key.DBName) {
				return fmt.Errorf("gormlock: %s: Select names columns of %s without its foreign key, so GORM would store it without: name %q too, and %q if it has one",
					p.model.Schema.Name, relation.Name, relation.Name+"."+key.Name, relation.Name+"."+relation.FieldSchema.PrimaryFields[0].Name)
			}
		}
	}
	return nil
}

// ownersUnlinked returns the error of a Select that names what structs belong to, and not the foreign key, which changes: GORM would store
// the other and not refer to it.
func (p *plan) ownersUnlinked(stmt *gorm.Statement) error {
	for _, relation := range p.model.Schema.Relationships.BelongsTo {
		if !slices.Contains(stmt.Selects, relation.Name) && !slices.Contains(stmt.Selects, clause.Associations) {
			continue
		}
		selected, restricted := stmt.SelectAndOmitColumns(false, false)
		f := form{plan: p, stmt: stmt, selected: selected, restricted: restricted}
		if !slices.ContainsFunc(relation.References, func(ref *schema.Reference) bool { return !f.asks(ref.ForeignKey.DBName) }) {
			continue
		}
		for i := range p.memory.Count {
			row := p.memory.Row(i)
			place := statement.Place(relation.Field, row)
			if place.IsValid() && !place.IsZero() && (!statement.HasKeyOfOther(relation, place) || !statement.Refers(relation, row, place)) {
				return fmt.Errorf("gormlock: %s: Select names %q without its foreign key, so GORM would store it, and not that it belongs here: name %q too",
					p.model.Schema.Name, relation.Name, relation.References[0].ForeignKey.Name)
			}
		}
	}
	return nil
}

// within is the association in which the name of a Select is, if that is not selected itself.
func (p *plan) within(stmt *gorm.Statement, name string) (association string, is bool) {
	of, in, nested := strings.Cut(name, ".")
	if !nested || in == "" || p.model.Schema.Relationships.Relations[of] == nil || of == stmt.Table {
		return "", false
	}
	return of, !slices.Contains(stmt.Selects, of) && !slices.Contains(stmt.Selects, clause.Associations)
}

// knows reports whether GORM finds something of the model by a name in Select.
func (p *plan) knows(stmt *gorm.Statement, name string) bool {
	s := p.model.Schema
	if field := s.LookUpField(name); field != nil && field.DBName != "" || name == "*" || name == clause.Associations || statement.NamesAssociation(s, name) {
		return true
	}
	if statement.IsInMap(stmt.Dest, name) {
		return true // a column that the model does not have, of which GORM takes the name as it is
	}
	alone := &gorm.Statement{DB: stmt.DB, Schema: s, Table: stmt.Table, Selects: []string{name}}
	found, _ := alone.SelectAndOmitColumns(false, false)
	for column := range found {
		if s.FieldsByDBName[column] != nil {
			return true
		}
	}
	return false
}
