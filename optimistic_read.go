package gormlock

import (
	"context"
	"reflect"

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
	dest   any
	writes []*versionWrite // in its transaction, when they were read
}

// keepRead notes what a query read, and what it preloads.
func keepRead(db *gorm.DB) { keepRowsRead(db, db.Statement.Dest) }

func keepRowsRead(db *gorm.DB, dest any) {
	stmt := db.Statement
	if db.Error != nil || db.DryRun || !needsJournal(stmt.Schema) {
		return
	}
	j := journalOf(stmt)
	if j == nil {
		return
	}
	if writes := j.versionsWritten(); len(writes) > 0 {
		r := readInTransaction{pluginOf(db), &gorm.DB{Config: db.Config}, stmt.Context, stmt.Schema, dest, writes}
		j.record(r.forget)
	}
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
	r.forgetIn(r.schema, reflect.ValueOf(r.dest), written, map[uintptr]bool{})
}

func (r readInTransaction) forgetIn(s *schema.Schema, value reflect.Value, written map[string]rowsWritten, seen map[uintptr]bool) {
	m := r.plugin.versions.of(r.db, s)
	eachStruct(value, func(row reflect.Value) {
		if row.Type() != s.ModelType || !row.CanAddr() || seen[row.Addr().Pointer()] {
			return
		}
		seen[row.Addr().Pointer()] = true
		if m.column != nil {
			key, _ := keyOf(&gorm.Statement{Context: r.ctx}, s, row)
			if rows, ok := written[m.table]; ok && key != nil && (rows.all || rows.keys[keyName(key)]) {
				m.column.write(row, m.column.unread())
			}
		}
		for _, relation := range s.Relationships.Relations {
			if place := placeOf(relation.Field, row); place.IsValid() && needsJournal(relation.FieldSchema) {
				r.forgetIn(relation.FieldSchema, place, written, seen)
			}
		}
	})
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
	rows.all = rows.all || w.memory.count == 0
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

// unread is the version of a struct that no row has: a write of it fails.
func (c *versionColumn) unread() version {
	kind := c.field.IndirectFieldType
	if kind.Kind() == reflect.Struct && kind.NumField() > 0 {
		kind = kind.Field(0).Type
	}
	switch {
	case !c.zeroIsLoaded():
		return version{null: true}
	case kind.Kind() >= reflect.Uint && kind.Kind() <= reflect.Uint64:
		return version{n: c.largest}
	default:
		return version{n: -1}
	}
}
