package reading

import (
	"database/sql"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/whereabouts"
)

// Read has structs that were read in a transaction after something may have been written in it: by GORM, by the caller's SQL, or by a trigger.
// After a rollback, it is possible that what they hold was never committed. Another writer could reach the same version, and then the next Save
// would overwrite its row without an error. So these structs count as not read after a rollback.
type Read struct {
	db     *gorm.DB
	schema *schema.Schema
	rows   []reflect.Value // the structs, of a model or of another type
	others []reflect.Value // maps, and places of single columns
	in     memory.Table    // the table of the model
	text   string          // the query
	models []*model.Model  // the models whose versions are in values that are not their structs
	joins  []string        // the names of the relations that the query joins
	mapped bool            // the caller gives columns other names
	again  []string        // the columns, if the query reads into one struct that may hold values of an earlier read
	later  *gorm.Statement // the statement in which ScanRows puts its destination later
	notes
}

// notes describe the structs that were read, for a rollback.
type notes struct {
	noted  *memory.Noted  // what the structs of models were
	late   bool           // noted is from after the query
	places *memory.Places // where they are now
}

// Begin prepares a query. m is its model, or nil.
func Begin(db *gorm.DB, m *model.Model) {
	apart(db, m)
	noteColumns(db)
	noteArray(db)
}

// Keep notes what a query read, and what it preloads.
func Keep(db *gorm.DB, columns *statement.Columns) {
	rows := reflect.ValueOf(db.Statement.Dest)
	noteAgain(db, rows, columns == nil)
	keepRows(db, rows, 0, columns)
	loseTakenBack(db, rows)
	loseUnreached(db, rows)
	refuseDoubled(db, columns)
}

// mayHaveFailed reports whether the server failed the query, or nobody says whether it did. What it returned can be unreadable for the program alone.
func mayHaveFailed(db *gorm.DB) bool {
	return sqlstate.Of(db.Error) != "" || sqlstate.IsOfTheNetwork(db.Error) || db.Statement.Context.Err() != nil
}

// loseTakenBack makes structs count as not read if their query, outside of a transaction, failed after it returned rows. It may have written them:
// UPDATE … RETURNING, whose commit fails.
func loseTakenBack(db *gorm.DB, rows reflect.Value) {
	if db.Error == nil || db.DryRun || db.RowsAffected == 0 || install.Of(db) == nil || statement.Transaction(db.Statement) != nil || !mayHaveFailed(db) {
		return
	}
	if r := Of(db.Statement, rows); r != nil {
		r.Lose()
	}
}

// KeepRows notes that a statement has read rows and has preloaded their children, and that they are in another place now.
func KeepRows(db *gorm.DB, rows reflect.Value) {
	KeepRowsOf(db, rows, 0)
	keepPreloaded(db, rows)
}

// KeepRowsOf notes that a statement has read rows, or is about to preload them. A read that failed may have read some of them. reading is how many
// statements read the rows: these do not count as earlier writes.
func KeepRowsOf(db *gorm.DB, rows reflect.Value, reading int) { keepRows(db, rows, reading, nil) }

func keepRows(db *gorm.DB, rows reflect.Value, reading int, columns *statement.Columns) {
	stmt := db.Statement
	if db.Error != nil && db.RowsAffected == 0 || db.DryRun || install.Of(db) == nil {
		return
	}
	j := journal.Of(stmt)
	if j != nil {
		whereabouts.KeepOwners(stmt, rows)
	}
	if j == nil || j.Written() <= reading {
		if j != nil {
			keepPlaces(stmt, rows)
		}
		return
	}
	if r := Of(stmt, rows); r != nil {
		if columns != nil && columns.All {
			r.again = columns.Names
		}
		if array, is := outgrown(stmt); is {
			r.hold(array)
		}
		r.noted = r.note(len(stmt.Selects) == 0 || slices.Contains(stmt.Selects, "*"))
		j.Keep(r)
	}
}

// KeepPreloaded notes where the children are that a query has preloaded: GORM may replace them later.
func KeepPreloaded(db *gorm.DB) { keepPreloaded(db, reflect.ValueOf(db.Statement.Dest)) }

func keepPreloaded(db *gorm.DB, rows reflect.Value) {
	stmt := db.Statement
	if len(stmt.Preloads) == 0 || stmt.Schema == nil || db.DryRun {
		return
	}
	j := journal.Of(stmt)
	if j == nil || install.Of(db) == nil {
		return
	}
	read, owners := map[*model.Model]*Read{}, readOf(stmt)
	preloaded := func(r *schema.Relationship) bool { return isPreloaded(stmt, r) }
	statement.EachStruct(rows, func(owner reflect.Value) {
		own := owners.schemaOf(owner)
		if own == nil {
			return
		}
		whereabouts.EachHeldIn(model.OfSchema(db, own), owner, preloaded, func(m *model.Model, row reflect.Value) {
			if m.Column == nil {
				return
			}
			r := read[m]
			if r == nil {
				r = readOf(stmt)
				r.schema, r.in, r.noted = m.Schema, owners.in.Beside(m.Schema), memory.NewNoted()
				read[m] = r
			}
			r.rows = append(r.rows, row)
			r.noted.Note(m, r.in, row)
		})
	})
	for _, r := range read {
		if j.Written() == 0 {
			j.Keep(&placed{r, r.noted, r.noted})
		} else {
			j.Keep(r)
		}
	}
}

// Of returns what a statement has read into rows, or nil if nothing of it has a version.
func Of(stmt *gorm.Statement, rows reflect.Value) *Read {
	r := readOf(stmt)
	r.hold(rows)
	needed := r.isNeeded()
	if strange := r.strange(); len(strange) > 0 {
		if carried := carriedBy(r.db, versioned(stmt.DB), strange, r.text); len(carried) > 0 {
			r.models = mayBeOf(stmt, carried, columnsOf(r.db, carried, strange), true)
		}
	}
	if needed || len(r.models) > 0 {
		return r
	}
	return nil
}

// isAgain reports whether a query reads into one struct that holds associations already, in a transaction that may have written. The columns of the
// query say which associations it reads.
func isAgain(stmt *gorm.Statement) bool {
	row := reflect.Indirect(reflect.ValueOf(stmt.Dest))
	if row.Kind() != reflect.Struct || !row.CanAddr() || statement.Transaction(stmt) == nil {
		return false
	}
	if j := journal.Of(stmt); j == nil || j.Written() == 0 {
		return false
	}
	own := readOf(stmt).schemaOf(row)
	return own != nil && statement.HoldsAssociation(own, row)
}

// isNeeded reports whether the structs that were read, or structs that they may hold, have versions by their tags.
func (r *Read) isNeeded() bool {
	if model.NeedsJournal(r.db, r.schema) {
		return true
	}
	var last reflect.Type
	return slices.ContainsFunc(r.rows, func(row reflect.Value) bool {
		if row.Type() == last {
			return false // as in the one before
		}
		last = row.Type()
		return model.NeedsJournal(r.db, r.schemaOf(row))
	})
}

// schemaOf is the schema of the struct's own type, which may differ from the model of the statement. It is nil if the type has none.
func (r *Read) schemaOf(row reflect.Value) *schema.Schema {
	if r.schema != nil && row.Type() == r.schema.ModelType {
		return r.schema
	}
	own := &gorm.Statement{DB: r.db}
	if !row.CanAddr() || own.Parse(row.Addr().Interface()) != nil {
		return nil
	}
	return own.Schema
}

// tableOf is the table that has the rows of a schema.
func (r *Read) tableOf(s *schema.Schema) memory.Table {
	if s == r.schema {
		return r.in
	}
	return r.in.Beside(s)
}

// strange returns what was read into anything but structs of a model with a version.
func (r *Read) strange() []reflect.Value {
	if len(r.rows) == 0 || r.schema != nil && r.rows[0].Type() == r.schema.ModelType && isModel(r.db, r.schema, r.text) {
		return r.others
	}
	if len(r.others) == 0 {
		return r.rows
	}
	return slices.Concat(r.rows, r.others)
}

// KeepScan notes that Scan may read rows of a statement whose rows are open now. If the caller scans rows one by one, GORM runs no callback, so
// gormlock does not see them.
func KeepScan(db *gorm.DB) {
	stmt := db.Statement
	defer refuseDoubledScan(db) // around the rows that report their end
	if db.Error != nil || db.DryRun {
		return
	}
	j := journal.Of(stmt)
	if j == nil {
		return
	}
	models, written := versioned(db), j.Written() > 0
	if !written && len(models) == 0 {
		return
	}
	r := readOf(stmt)
	if !written {
		r.keepScanned(db, &placed{read: r})
		return
	}
	r.models = models
	columns := versionNames(r.models)
	if rows, open := stmt.Dest.(*sql.Rows); open && rows != nil {
		if names, err := rows.Columns(); err != nil || len(names) == 1 || !slices.ContainsFunc(names, func(name string) bool { return columns[strings.ToLower(name)] }) {
			columns = nil // its own names say nothing
		}
	}
	r.models = mayBeOf(stmt, r.models, columns, false)
	r.keepScanned(db, r)
}

func readOf(stmt *gorm.Statement) *Read {
	r := &Read{db: &gorm.DB{Config: stmt.Config}, schema: stmt.Schema, text: stmt.SQL.String(), mapped: len(stmt.ColumnMapping) > 0}
	if r.in = memory.Here(stmt); stmt.Schema != nil {
		r.in = r.in.Of(stmt, stmt.Schema)
	}
	for _, join := range stmt.Joins {
		r.joins = append(r.joins, strings.Split(join.Name, ".")...)
	}
	return r
}

// hold keeps what a query has read, because the caller may read other rows into the same slice later.
func (r *Read) hold(dest reflect.Value) {
	carriers(dest, func(value reflect.Value) {
		if value.Kind() == reflect.Struct && !scans(value) {
			r.rows = append(r.rows, value)
		} else {
			r.others = append(r.others, value)
		}
	})
}

// Undo implements journal.Step, as does Lose.
func (r *Read) Undo() { r.Lose() }

// Lose makes the structs count as not read.
func (r *Read) Lose() {
	r.Noted()
	if r.noted == nil {
		r.noted = r.note(true)
	}
	r.noted.Lose(r.places)
	ofModel := isModel(r.db, r.schema, r.text)
	for _, row := range r.rows {
		own := r.schemaOf(row)
		switch needed := model.NeedsJournal(r.db, own); {
		case r.noted.IsUsed(r.places, row):
			continue
		case needed && own == r.schema && ofModel:
			continue
		case needed:
			forgetTagged(model.OfSchema(r.db, own), row)
		}
		r.forgetStrange(own, row)
	}
	for _, other := range r.others {
		forgetCarrier(r.db, r.models, other, r.text)
	}
}

// scannedInto notes what Scan has read. It reports false if that is nothing.
func (r *Read) scannedInto(reflect.Value) bool {
	r.noted = r.note(true)
	return len(r.rows)+len(r.others) > 0
}

// Noted implements whereabouts.Reader.
func (r *Read) Noted() *memory.Noted {
	if r.later != nil && r.scanned() {
		r.noted, r.late = r.note(true), true
	}
	return r.noted
}

// forgetStrange removes the versions of other models from a struct whose type has no version. If the text names the type's own table, the struct
// holds its own row, whatever its columns are called.
func (r *Read) forgetStrange(own *schema.Schema, row reflect.Value) {
	if !isOwnRow(r.text, own, r.models) {
		forgetCarrier(r.db, r.models, row, r.text)
	}
}

// mayJoin reports whether the query may read into a relation.
func (r *Read) mayJoin(relation *schema.Relationship) bool {
	return r.mapped || slices.Contains(r.joins, relation.Name) || strings.Contains(r.text, relation.Name+"__") ||
		slices.ContainsFunc(r.again, func(column string) bool { return strings.Contains(column, relation.Name+"__") })
}
