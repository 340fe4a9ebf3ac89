package gormlock

import (
	"context"
	"reflect"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// readInTransaction is structs that were read in a transaction which had written versioned rows before. If it is rolled
// back, what they hold of those rows was never there: the version would fit one that another writer makes, and the next
// Save would overwrite it in silence. So they count as not read then. What Scan, Rows and Raw bring passes no
// callback of GORM's and is the caller's to forget.
type readInTransaction struct {
	plugin *Plugin
	db     *gorm.DB
	ctx    context.Context
	schema *schema.Schema
	rows   []reflect.Value // the structs, of a model or of whatever else it was read into
	writes []*versionWrite // in its transaction, when they were read
}

// keepRead notes what a query read, and what it preloads.
func keepRead(db *gorm.DB) { keepRowsRead(db, reflect.ValueOf(db.Statement.Dest)) }

// keepRowsRead notes that a statement has read rows, or is about to preload them. A read that failed may have come to
// some of them before.
func keepRowsRead(db *gorm.DB, rows reflect.Value) {
	stmt := db.Statement
	if db.Error != nil && db.RowsAffected == 0 || db.DryRun || !needsJournal(db, stmt.Schema) {
		return
	}
	j := journalOf(stmt)
	if j == nil {
		return
	}
	writes := j.versionsWritten()
	if len(writes) == 0 {
		return
	}
	r := readInTransaction{plugin: pluginOf(db), db: &gorm.DB{Config: db.Config}, ctx: stmt.Context, schema: stmt.Schema, writes: writes}
	eachStruct(rows, func(row reflect.Value) { r.rows = append(r.rows, row) }) // the caller may go on to read others into his slice
	j.record(r.forget)
}

// wrote notes a versioned write, for the reads that follow it.
func (j *journal) wrote(w *versionWrite) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writes = append(j.writes, w)
}

// versionsWritten are the versioned writes of the transaction that were not rolled back.
func (j *journal) versionsWritten() []*versionWrite {
	j.mu.Lock()
	defer j.mu.Unlock()
	var live []*versionWrite
	for _, w := range j.writes {
		if !w.undone {
			live = append(live, w)
		}
	}
	return live
}

func (r readInTransaction) forget() {
	written := map[string]rowsWritten{}
	for _, w := range r.writes {
		w.addKeys(r.ctx, written)
	}
	seen := map[any]bool{}
	for _, row := range r.rows {
		r.forgetIn(r.schema, row, written, seen)
	}
}

func (r readInTransaction) forgetIn(s *schema.Schema, value reflect.Value, written map[string]rowsWritten, seen map[any]bool) {
	m := r.plugin.versions.of(r.db, s)
	eachStruct(value, func(row reflect.Value) {
		if !row.CanAddr() || seen[row.Addr().Interface()] {
			return
		}
		seen[row.Addr().Interface()] = true
		rows, wrote := written[m.table]
		if row.Type() != s.ModelType {
			if m.column != nil && wrote {
				r.forgetForm(m, row, rows)
			}
			return
		}
		if m.column != nil && wrote {
			key, _ := keyOf(&gorm.Statement{Context: r.ctx}, s, row)
			if key != nil && (rows.all || rows.keys[keyName(key)]) {
				m.column.write(row, m.column.unread())
			}
		}
		for _, relation := range ownRelations(s) {
			if place := placeOf(relation.Field, row); place.IsValid() && needsJournal(r.db, relation.FieldSchema) {
				r.forgetIn(relation.FieldSchema, place, written, seen)
			}
		}
	})
}

// forgetForm does so for a struct that is not the model and has its version: an update by it would compare that.
func (r readInTransaction) forgetForm(m *versionedModel, row reflect.Value, rows rowsWritten) {
	stmt := &gorm.Statement{DB: r.db, Context: r.ctx}
	if row.Type() == timeType || stmt.Parse(row.Addr().Interface()) != nil {
		return
	}
	field := stmt.Schema.LookUpField(m.column.field.DBName)
	column := versionColumn{field: field, largest: m.column.largest}
	if field == nil || !column.shapedAs(field.FieldType) {
		return
	}
	var key []any
	for _, primary := range m.schema.PrimaryFields {
		part := stmt.Schema.LookUpField(primary.DBName)
		if part == nil { // it can be any row
			rows.all = true
			break
		}
		value, _ := part.ValueOf(r.ctx, row)
		key = append(key, value)
	}
	if held := column.read(row); held.null || column.unset(held) {
		return
	}
	if rows.all || rows.keys[keyName(key)] {
		column.write(row, column.ofNoRow())
	}
}

// rowsWritten are rows of one table.
type rowsWritten struct {
	all  bool // which ones is not known
	keys map[string]bool
}

func (w *versionWrite) addKeys(ctx context.Context, written map[string]rowsWritten) {
	rows := written[w.model.table]
	if rows.keys == nil {
		rows.keys = map[string]bool{}
	}
	rows.all = rows.all || !w.knowsItsRows()
	for i := range w.returning.len() { // an upsert may write another row than that of its struct's key
		key, _ := keyOf(&gorm.Statement{Context: ctx}, w.model.schema, w.returning.rows.Index(i))
		rows.keys[keyName(key)] = true
	}
	for i := range w.memory.count {
		row := w.memory.of(w.memory.after, i)
		if !row.IsValid() {
			row = w.memory.row(i)
		}
		key, _ := keyOf(&gorm.Statement{Context: ctx}, w.model.schema, row)
		if key == nil {
			rows.all = true
			break
		}
		rows.keys[keyName(key)] = true
	}
	written[w.model.table] = rows
}

// knowsItsRows tells whether the rows that the statement wrote are those of its structs, and those that it returned.
func (w *versionWrite) knowsItsRows() bool {
	switch w.op {
	case opCreate:
		return w.memory.count > 0
	case opClaim:
		return !w.lostRows
	case opUpsert:
		return w.returning.has()
	case opUpdate, opDelete, opSave, opTouch, opVerify:
	}
	return len(w.rows) > 0
}

// unread is the version of a struct that no row has: a write of it fails.
func (c *versionColumn) unread() version {
	if !c.zeroIsLoaded() {
		return version{null: true}
	}
	return c.ofNoRow()
}

// ofNoRow is one that no row has, where 0 and NULL would say that none is expected.
func (c *versionColumn) ofNoRow() version {
	kind := c.field.IndirectFieldType
	if c.shape == nullableVersion {
		kind = kind.Field(0).Type
	}
	switch {
	case c.kind == temporalVersion:
		return versionAt(time.Time{}.Add(time.Hour))
	case kind.Kind() >= reflect.Uint && kind.Kind() <= reflect.Uint64:
		return version{n: c.largest}
	default:
		return version{n: -1}
	}
}
