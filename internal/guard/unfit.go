package guard

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// Things that a statement asks for besides its values, and that GORM would leave out, or do to other rows.

// mapped returns the error of a write with MapColumns: GORM would read the returned values into other fields.
func mapped(stmt *gorm.Statement, m *model.Model) error {
	if len(stmt.ColumnMapping) == 0 {
		return nil
	}
	return fmt.Errorf("gormlock: %s: MapColumns is for queries, a write would read its own columns into other fields: leave it out", m.Schema.Name)
}

// unlinks returns the error of a condition on one row in a statement that removes rows from an association. It would be a condition on each of
// these rows, and some of them could stay.
func unlinks(stmt *gorm.Statement, m *model.Model, intent *asked.Intent) error {
	if !intent.Compares() || !statement.InUnlinking() {
		return nil
	}
	if row := reflect.Indirect(reflect.ValueOf(stmt.Model)); row.Kind() == reflect.Struct && row.Type() == m.Schema.ModelType {
		key, _ := statement.KeyOf(stmt, m.Schema, row)
		belongs := func(name string) bool {
			r := m.Schema.Relationships.Relations[name]
			return r == nil || r.Type == schema.BelongsTo
		}
		if key != nil && !slices.ContainsFunc(stmt.Selects, func(name string) bool { return !belongs(name) }) {
			return nil // it is the owner, which belongs to another row
		}
	}
	return fmt.Errorf("gormlock: %s: %s says which version one row has, and Association(…).Delete, Replace and Clear take several away: "+
		"compare the owner by Touch or VerifyVersion in the same transaction, or update the rows by themselves", m.Schema.Name, intent)
}

// refuseConditions fails an upsert with conditions: GORM leaves them out of an INSERT.
func (w *Write) refuseConditions(db *gorm.DB) {
	where, asked := db.Statement.Clauses["WHERE"].Expression.(clause.Where)
	_, queried := db.Statement.Clauses["FROM"]
	switch {
	case queried && w.upsert.saves: // the chain has made a query, and still has its conditions: the result of the query is saved
	case !asked || len(where.Exprs) == 0 || db.Error != nil || w.upsert.child || !statement.HasUpsert(db.Statement) || statement.InFirstOrCreate():
	case w.upsert.saves:
		refuseBefore(db, fmt.Errorf("gormlock: %s: Save of a slice stores its structs whether or not the conditions of Where hold: use Updates, or save the structs without Where",
			w.model.Schema.Name))
	default:
		refuseBefore(db, fmt.Errorf("gormlock: %s: an upsert has no conditions but those of clause.OnConflict{Where: …}: write them there, and leave Where out", w.model.Schema.Name))
	}
}

// refuseChildrenOfNobody fails a delete of children whose struct has no key, because GORM takes the keys of the parents from the struct alone. A
// delete of all associations passes that on to their deletes, although nobody has asked for the associations of these.
func (w *Write) refuseChildrenOfNobody(db *gorm.DB) {
	for _, name := range db.Statement.Selects {
		if name == clause.Associations && statement.InDeleteOfOwner() {
			continue
		}
		r := w.model.Schema.Relationships.Relations[name]
		if name == clause.Associations && len(statement.OwnRelations(w.model.Schema)) > 0 || r != nil && r.Type != schema.BelongsTo {
			refuseBefore(db, fmt.Errorf("gormlock: %s: Select(%q) of a delete deletes what belongs to the struct that Delete is given, and that has no key: read the rows, and delete these",
				w.model.Schema.Name, name))
			return
		}
	}
}

// errBuilt is the error of a statement that already has the text of another statement: GORM would send that text again.
func errBuilt() error {
	if statement.InHook() {
		return errors.New("gormlock: not executed, the statement was built before it began: in a hook, tx.Session " +
			"repeats the hook's own statement, use Session(&gorm.Session{NewDB: true})")
	}
	return errors.New("gormlock: not executed, the db already has the text of a statement, as after Raw, and GORM would send that: " +
		"give a text to Exec, or create, update and delete on a db without one")
}
