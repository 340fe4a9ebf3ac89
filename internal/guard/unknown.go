package guard

import (
	"fmt"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// refuseUnknown fails a write whose Select names what the model does not have: GORM would leave it out, and write nothing if there
// is nothing else. A name in Omit that is several would be left out too, and what it names written. One that is nothing may stand
// for a column of other models.
func (w *Write) refuseUnknown(db *gorm.DB) {
	if db.Error != nil || w.intent.touches() {
		return
	}
	for _, name := range db.Statement.Omits {
		if strings.ContainsAny(name, ", \t\n") && !w.knows(db.Statement, name) {
			w.refuseName(db, "Omit", name)
			return
		}
	}
	for _, name := range db.Statement.Selects {
		if !w.knows(db.Statement, name) && !statement.InAppend() { // for whose sake GORM names foreign keys of the other model too
			w.refuseName(db, "Select", name)
			return
		}
	}
}

func (w *Write) refuseName(db *gorm.DB, method, name string) {
	err := fmt.Errorf("gormlock: %s: %s names %q, which is neither a column nor an association, so GORM would leave it out: name each by itself, as in %s(\"a\", \"b\")",
		w.model.Schema.Name, method, name, method)
	doomWithParent(db, err)
	fault.Add(db, err)
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
