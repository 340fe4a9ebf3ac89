package guard

import (
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// refuseUnknown fails a write whose Select names what the model does not have: GORM would leave it out, and write nothing if there
// is nothing else.
func (w *Write) refuseUnknown(db *gorm.DB) {
	if db.Error != nil || w.intent.touches() {
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
	doomWithParent(db, err)
	fault.Add(db, err)
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
