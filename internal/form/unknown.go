package form

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/statement"
)

// Unknown returns the error of a Select that names something that the model does not have. GORM would leave that out, and write nothing if there is
// nothing else.
func (w Write) Unknown(deletes bool) error {
	if len(w.Stmt.Selects) == 0 || slices.Equal(w.Stmt.Selects, []string{"*"}) {
		return nil
	}
	if err := cmp.Or(w.childrenUnlinked(), w.ownersUnlinked()); err != nil && !deletes && !statement.InAppend() {
		return err
	}
	for _, name := range w.Stmt.Selects {
		if of, is := w.within(name); is {
			return fmt.Errorf("gormlock: %s: Select names %q without %q, so GORM would not save that association: name both",
				w.Model.Schema.Name, name, of)
		}
		if !w.knows(name) && !statement.InAppend() { // in Append, GORM itself names foreign keys of the other model too
			return fmt.Errorf("gormlock: %s: Select names %q, which is neither a column nor an association, so GORM would leave it out: name each by itself, as in Select(\"a\", \"b\")",
				w.Model.Schema.Name, name)
		}
	}
	return nil
}

// childrenUnlinked returns the error of a Select that names columns of children but not their foreign key: the children would be stored without it.
func (w Write) childrenUnlinked() error {
	for _, relation := range slices.Concat(w.Model.Schema.Relationships.HasOne, w.Model.Schema.Relationships.HasMany) {
		named := func(in string) bool { return slices.Contains(w.Stmt.Selects, relation.Name+"."+in) }
		if !slices.ContainsFunc(w.Stmt.Selects, func(name string) bool { return strings.HasPrefix(name, relation.Name+".") }) || named("*") {
			continue
		}
		for _, ref := range relation.References {
			if key := ref.ForeignKey; !named(key.Name) && !named(key.DBName) {
				return fmt.Errorf("gormlock: %s: Select names columns of %s without its foreign key, so GORM would store it without: name %q too, and %q if it has one",
					w.Model.Schema.Name, relation.Name, relation.Name+"."+key.Name, relation.Name+"."+relation.FieldSchema.PrimaryFields[0].Name)
			}
		}
	}
	return nil
}

// ownersUnlinked returns the error of a Select that names a belongs-to but not its foreign key, which changes: GORM would store the owner and not
// refer to it.
func (w Write) ownersUnlinked() error {
	for _, relation := range w.Model.Schema.Relationships.BelongsTo {
		if !slices.Contains(w.Stmt.Selects, relation.Name) && !slices.Contains(w.Stmt.Selects, clause.Associations) {
			continue
		}
		chosen := statement.ChosenByCaller(w.Stmt)
		if !slices.ContainsFunc(relation.References, func(ref *schema.Reference) bool { return !chosen.Has(ref.ForeignKey.DBName) }) {
			continue
		}
		for i := range w.Structs.Count {
			row := w.Structs.Row(i)
			place := statement.Place(relation.Field, row)
			if place.IsValid() && !place.IsZero() && (!statement.HasKeyOfOther(relation, place) || !statement.Refers(relation, row, place)) {
				return fmt.Errorf("gormlock: %s: Select names %q without its foreign key, so GORM would store it, and not that it belongs here: name %q too",
					w.Model.Schema.Name, relation.Name, relation.References[0].ForeignKey.Name)
			}
		}
	}
	return nil
}

// within returns the association of a nested name in Select, if the association itself is not selected.
func (w Write) within(name string) (association string, is bool) {
	of, in, nested := strings.Cut(name, ".")
	if !nested || in == "" || w.Model.Schema.Relationships.Relations[of] == nil || of == w.Stmt.Table {
		return "", false
	}
	return of, !slices.Contains(w.Stmt.Selects, of) && !slices.Contains(w.Stmt.Selects, clause.Associations)
}

// knows reports whether GORM finds something in the model under a name in Select.
func (w Write) knows(name string) bool {
	s := w.Model.Schema
	if field := s.LookUpField(name); field != nil && field.DBName != "" || name == "*" || name == clause.Associations || statement.NamesAssociation(s, name) {
		return true
	}
	if statement.IsInMap(w.Stmt.Dest, name) {
		return true // a column that the model does not have: GORM uses its name as it is
	}
	alone := &gorm.Statement{DB: w.Stmt.DB, Schema: s, Table: w.Stmt.Table, Selects: []string{name}}
	found, _ := alone.SelectAndOmitColumns(false, false)
	for column := range found {
		if s.FieldsByDBName[column] != nil {
			return true
		}
	}
	return false
}
