package guard

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/statement"
)

// upsert says how a create treats existing rows.
type upsert struct {
	standing
	met
	rows  []upsertRow
	keyed [][]any        // the keys of its structs, if others have none and may only be inserted: see insertNew
	had   *clause.Clause // the caller's clause, if all structs may only be inserted
	tells telling        // how the statement says which rows it inserts: see tell
	held  []heldField    // values of structs instead of which GORM would store other values
	sent  []sentCell     // the version and the key of each struct among the sent values
}

// standing says what the structs of an upsert stand for.
type standing struct {
	strict bool // Save of a slice, or associations saved whole: a struct with a key stands for a row that was read
	saves  bool // as strict, whether or not versions are ignored
	child  bool // GORM made it to save an association
	exist  bool // as strict, but versions are ignored: the row of a struct that was read must exist
}

// met says what an upsert does to rows that it meets.
type met struct {
	updates    bool // it updates them
	links      bool // only the foreign keys of children are set
	whole      bool // all columns are set, without their names
	skips      bool // it leaves them alone
	skipsByKey bool // it skips those that it meets by key, and no others
	unclear    bool // structs without a key can still meet a row by other columns
}

// upsertRow is the part of an upsert for one struct.
type upsertRow struct {
	loaded   bool          // the struct stands for a row from which it was read
	unread   bool          // the struct stands for a row from which it was not read
	moves    bool          // the struct is a child that comes from another parent, or from none
	apart    bool          // the struct is a child, and proposes a version that only an INSERT can have stored
	found    reflect.Value // the row that was found instead of it, and skipped, if the server returns such rows
	guessed  bool          // the struct had no key, and has the one that GORM has computed
	exists   bool          // the struct was read from its row, whatever the row's version is now
	mayBeNew bool          // the struct may be new although it counts as loaded, because its version is that of a new row
	stands   bool          // the row, if it exists, gets what the struct holds
	finds    bool          // the struct may find a row
	unsure   bool          // the struct is a child that was not read, and its key is a row's or new
}

// upsertOf says how the create is made. In a Save of a slice, and in associations that are saved whole, structs stand for loaded rows. In other
// creates they do not.
func upsertOf(stmt *gorm.Statement) *upsert {
	_, tracked := stmt.Settings.Load("gorm:update_track_time")
	return &upsert{standing: standing{strict: tracked, saves: tracked, child: statement.IsAssociation(stmt)}}
}

// refuseWithoutKeys makes the check of sortStructs for structs with a fence and no version.
func (p *plan) refuseWithoutKeys(stmt *gorm.Statement) (err error) {
	statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) {
		if row.Type() != p.model.Schema.ModelType || err != nil {
			return
		}
		if key, _ := statement.KeyOf(stmt, p.model.Schema, row); key != nil && !lacksGenerated(p.model.Schema, row) {
			err = p.refuseWithoutKey(stmt, key)
		}
	})
	return err
}

// refuseWithoutKey refuses an INSERT of a struct with a key if the INSERT leaves the key out: it would make another row, or find one by the key
// that the database gives.
func (p *plan) refuseWithoutKey(stmt *gorm.Statement, key []any) error {
	chosen := statement.ChosenFor(stmt, true)
	for _, field := range p.model.Schema.PrimaryFields {
		if !field.Creatable {
			return fmt.Errorf("gormlock: %s: the tag of its key %s leaves it out of each INSERT, so another row would be written: save the structs one by one",
				p.rowName(stmt, key), field.DBName)
		}
		if !chosen.Has(field.DBName) {
			return fmt.Errorf("gormlock: %s: Select or Omit leaves its key %s out of the INSERT, so another row would be written: name it in Select too, or save the struct by itself",
				p.rowName(stmt, key), field.DBName)
		}
	}
	return nil
}

// keyIsNew reports whether the struct had no key before its hooks, and before its belongs-to was stored: then it was not read.
func (p *plan) keyIsNew(stmt *gorm.Statement, i int) bool {
	was := p.memory.Was(i)
	if !was.IsValid() || stmt.SkipHooks {
		return false
	}
	key, _ := statement.KeyOf(stmt, p.model.Schema, was)
	return key == nil
}

// isOnKey reports whether existing rows are found by their primary key.
func (p *plan) isOnKey(conflict clause.OnConflict) bool {
	if len(conflict.Columns) == 0 { // this is PostgreSQL's default name for the constraint of the key
		return conflict.OnConstraint == "" || conflict.OnConstraint == p.model.Schema.Table+"_pkey"
	}
	return !slices.ContainsFunc(conflict.Columns, func(c clause.Column) bool {
		name := c.Name
		if c.Raw {
			name = strings.Trim(name, "() \"`")
		}
		field := p.model.Schema.LookUpField(name)
		return field == nil || !field.PrimaryKey
	})
}

// negative is the error of a new row whose struct holds a version below zero.
func negative(stmt *gorm.Statement, n int64) error {
	return fmt.Errorf("gormlock: %s: version %d of a new row is negative", stmt.Table, n)
}

// structsWhere returns the places of the structs of an upsert for which is returns true.
func (p *plan) structsWhere(is func(upsertRow) bool) (structs []int) {
	for i := range p.rows {
		if is(p.upsert.rows[i]) {
			structs = append(structs, i)
		}
	}
	return structs
}

// keysOf returns the keys of these structs.
func (p *plan) keysOf(structs []int) [][]any {
	keys := make([][]any, len(structs))
	for n, i := range structs {
		keys[n] = p.rows[i].Key
	}
	return keys
}

// refuseIgnore refuses a create that silently skips rows: its structs would count as stored, and the next save of one would overwrite the existing
// row. It also refuses a create that replaces rows, because that compares nothing.
func (p *plan) refuseIgnore(stmt *gorm.Statement) error {
	insert, _ := stmt.Clauses["INSERT"].Expression.(clause.Insert)
	switch modifier := strings.ToUpper(insert.Modifier); {
	case strings.Contains(modifier, "REPLACE"):
		return fmt.Errorf("gormlock: %s: INSERT OR REPLACE compares no version, and lets it go back: use clause.OnConflict{UpdateAll: true}", p.model.Schema.Name)
	case !strings.Contains(modifier, "IGNORE"):
		return nil
	}
	return fmt.Errorf("gormlock: %s: INSERT IGNORE does not say which rows it left out: use clause.OnConflict{DoNothing: true}", p.model.Schema.Name)
}

// fitsUpsert refuses what an upsert of a guarded row cannot express on this server: the driver would silently leave it out.
func (p *plan) fitsUpsert(stmt *gorm.Statement, conflict clause.OnConflict) error {
	if !dialect.Of(stmt.DB).IsMySQL() || conflict.DoNothing {
		return nil
	}
	var what string
	switch {
	case len(conflict.Where.Exprs) > 0:
		what = "Where"
	case len(conflict.TargetWhere.Exprs) > 0:
		what = "TargetWhere"
	case conflict.OnConstraint != "":
		what = "OnConstraint"
	default:
		return nil
	}
	return fmt.Errorf("gormlock: %s: %s is not possible in an upsert of %s, which ignores it: lock the row and update it, or create it",
		p.model.Schema.Name, what, dialect.Of(stmt.DB))
}

// conflictFields are the columns by which an upsert finds rows, or none if they are not columns of the model.
func (p *plan) conflictFields(stmt *gorm.Statement) []*schema.Field {
	conflict, _ := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	var fields []*schema.Field
	for _, column := range conflict.Columns {
		field := p.model.Schema.LookUpField(column.Name)
		if field == nil {
			return nil
		}
		fields = append(fields, field)
	}
	if len(fields) == 0 {
		return p.model.Schema.PrimaryFields
	}
	return fields
}

// conflicting says by what the rows of an upsert are found: columns, and their values for each row.
func (p *plan) conflicting(stmt *gorm.Statement, fields []*schema.Field) (columns any, values []any) {
	names := make([]clause.Column, len(fields))
	for i, field := range fields {
		names[i] = clause.Column{Table: clause.CurrentTable, Name: field.DBName}
	}
	for i := range p.memory.Count {
		in := valuesIn(stmt, fields, p.structBefore(i))
		if len(fields) == 1 {
			values = append(values, in[0])
		} else {
			values = append(values, in)
		}
	}
	if len(fields) == 1 {
		return names[0], values
	}
	return names, values
}

// valuesIn are the values of the fields in row.
func valuesIn(stmt *gorm.Statement, fields []*schema.Field, row reflect.Value) []any {
	values := make([]any, len(fields))
	for i, field := range fields {
		values[i], _ = field.ValueOf(stmt.Context, row)
	}
	return values
}
