package guard

import (
	"fmt"

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
		if !w.knows(db.Statement, name) && !statement.InAppend() { // for whose sake GORM names foreign keys of the other model too
			err := fmt.Errorf("gormlock: %s: Select names %q, which is neither a column nor an association, so GORM would leave it out: name each by itself, as in Select(\"a\", \"b\")",
				w.model.Schema.Name, name)
			doomWithParent(db, err)
			fault.Add(db, err)
			return
		}
	}
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
