package gormlock

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// checkVersionsBeforeUpdate settles which version each row must have, when hooks and the associations it belongs to are
// through.
func checkVersionsBeforeUpdate(db *gorm.DB) {
	w := versionWriteOf(db.Statement)
	if w == nil || db.Error != nil {
		return
	}
	save := mayBeSave(db.Statement) && !w.batch
	w.save = save && (w.model.column != nil || w.intent.columns() != nil)
	w.filtered = filtered(db.Statement) && !w.intent.touches()
	switch {
	case w.intent.touches():
		w.op, w.forced = opTouch, true
	case save:
		w.op = opSave
	}
	if err := w.prepare(db.Statement); err != nil {
		w.refuse(db, err)
		return
	}
	if len(db.Statement.Clauses) > 1 { // one is ours
		_, w.addKey = db.Statement.Clauses["SET"]
		if w.addKey && w.model.column == nil && w.intent.columns() == nil {
			w.rows, w.batch = nil, false // it is about the rows that its own conditions find, as in GORM
		}
	}
	w.everywhere(db.Statement)
	w.addKey = (w.addKey || w.partialKey) && len(w.rows) == 1 && !w.batch
	w.wantAssigned(db.Statement)
	w.arm(db.Statement)
}

// prepare reads keys and expected versions.
func (w *versionWrite) prepare(stmt *gorm.Statement) error {
	if err := w.readKeys(stmt); err != nil {
		return err
	}
	column := w.model.column
	if w.batch && w.intent.columns() != nil {
		return fmt.Errorf("gormlock: %s: IfUnchanged compares one struct, not a slice", w.model.schema.Name)
	}
	if column == nil {
		if w.batch {
			return w.pairTwins(stmt)
		}
		return nil
	}
	given, err := w.given(stmt)
	if err != nil {
		return err
	}
	var now time.Time
	if column.kind == temporalVersion {
		now = stmt.NowFunc()
	}
	w.exact = true
	for i := range w.rows {
		row := &w.rows[i]
		if row.expected = column.read(row.row); given != nil {
			row.expected = *given
		}
		row.next = column.next(row.expected, now)
		w.exact = w.exact && column.plainly(row.expected)
		if column.kind == temporalVersion && row.next.time().After(w.later.time()) {
			w.later = row.next
		}
		if w.intent.ignores() {
			continue
		}
		if column.kind == integerVersion && row.expected.n >= column.largest {
			return fmt.Errorf("gormlock: %s: version %d is the largest its column holds", w.rowName(stmt, w.named(stmt, row).key), row.expected.n)
		}
	}
	if column.kind == temporalVersion {
		for i := range w.rows {
			w.rows[i].next = w.later
		}
	}
	switch {
	case w.batch:
		w.checked = !w.intent.ignores()
		w.exact = w.exact && w.checked
		return w.pairTwins(stmt)
	case len(w.rows) == 1:
		w.checked = !w.intent.ignores()
	default:
		w.rows, w.exact, w.later = nil, false, column.first(now)
		if given != nil {
			w.single[0].expected, w.single[0].next = *given, column.next(*given, now)
			w.checked, w.exact = true, column.plainly(*given)
		}
	}
	w.exact = w.exact && w.checked
	return nil
}

// readKeys reads the primary keys. A bulk statement has none: its rows are forgotten.
func (w *versionWrite) readKeys(stmt *gorm.Statement) error {
	w.expand()
	if !w.batch {
		if len(w.rows) == 1 && !w.hasKey(w.rows[0].row) {
			w.rows = nil
		}
		return nil
	}
	keyed := 0
	for i := range w.rows {
		row := &w.rows[i]
		if row.key, _ = keyOf(stmt, w.model.schema, row.row); row.key != nil {
			row.name = keyName(row.key)
			keyed++
		}
	}
	if keyed > 0 && keyed < len(w.rows) {
		i := slices.IndexFunc(w.rows, func(r versionRow) bool { return r.key == nil })
		return fmt.Errorf("gormlock: %s: element %d of %d has no primary key: %w", stmt.Table, i, len(w.rows), gorm.ErrPrimaryKeyRequired)
	}
	if keyed == 0 {
		w.rows, w.batch = nil, false
	}
	return nil
}

// hasKey tells whether the struct names a row. GORM leaves a zero part of its key out of the conditions: of a loaded
// struct it belongs there.
func (w *versionWrite) hasKey(row reflect.Value) bool {
	zero := 0
	for _, field := range w.model.schema.PrimaryFields {
		if place := placeOf(field, row); !place.IsValid() || place.IsZero() {
			zero++
		}
	}
	switch {
	case zero == 0:
		return true
	case zero == len(w.model.schema.PrimaryFields):
		return false
	}
	w.partialKey = w.model.column != nil && w.model.column.loaded(w.model.column.read(row)) || w.fence != nil && w.fence.read(row).n != 0
	return w.partialKey
}

// hasWholeKey tells whether no part of the struct's key is missing.
func (w *versionWrite) hasWholeKey(row reflect.Value) bool {
	return !slices.ContainsFunc(w.model.schema.PrimaryFields, func(field *schema.Field) bool {
		place := placeOf(field, row)
		return !place.IsValid() || place.IsZero()
	})
}

// named reads the key of the one row, which is needed only where something is to be said of it.
func (w *versionWrite) named(stmt *gorm.Statement, row *versionRow) *versionRow {
	if row.key != nil {
		return row
	}
	if was := w.memory.was(0); was.IsValid() { // the statement may set the key itself
		row.key, _ = keyOf(stmt, w.model.schema, was)
	}
	if row.key == nil {
		row.key, _ = keyOf(stmt, w.model.schema, row.row)
	}
	row.name = keyName(row.key)
	return row
}

// pairTwins marks the copies of one row in a batch. Copies at different versions cannot both be fresh.
func (w *versionWrite) pairTwins(stmt *gorm.Statement) error {
	first := make(map[string]*versionRow, len(w.rows))
	for i := range w.rows {
		row := &w.rows[i]
		twin := first[row.name]
		if twin == nil {
			first[row.name] = row
			continue
		}
		row.twin = true
		if !row.expected.equal(twin.expected) {
			older, newer := row, twin
			if older.expected.n > newer.expected.n || older.expected.time().After(newer.expected.time()) {
				older, newer = newer, older
			}
			return w.stale(stmt, older, w.model.column.any(newer.expected), false)
		}
	}
	return nil
}

// given is the version that the caller named, in ExpectVersion or in what is written: a struct or form that carries one,
// or in Rails mode a map.
func (w *versionWrite) given(stmt *gorm.Statement) (*version, error) {
	column := w.model.column
	inDest, err := w.inDestination(stmt)
	if err != nil {
		return nil, err
	}
	if w.intent == nil || !w.intent.expects {
		return inDest, nil
	}
	v, err := column.of(w.intent.expected)
	return &v, err
}

func (w *versionWrite) inDestination(stmt *gorm.Statement) (*version, error) {
	column := w.model.column
	if value, assigned := assignedTo(stmt, column.field.DBName); assigned && !w.intent.touches() {
		return w.inMap(map[string]any{column.field.DBName: value})
	}
	switch dest := stmt.Dest.(type) {
	case map[string]any:
		return w.inMap(dest)
	case *map[string]any:
		return w.inMap(*dest)
	}
	if samePointer(stmt.Model, stmt.Dest) {
		return nil, nil
	}
	dest := reflect.ValueOf(stmt.Dest)
	for dest.Kind() == reflect.Pointer {
		dest = dest.Elem()
	}
	if dest.Kind() != reflect.Struct {
		return nil, nil
	}
	if dest.Type() == w.model.schema.ModelType {
		// with its key it is a row that was read, perhaps at version 0; without, values to set
		if v := column.read(dest); !column.unset(v) || v.n < 0 || column.zeroIsLoaded() && w.hasWholeKey(dest) {
			return &v, nil
		}
		return nil, nil
	}
	form := &gorm.Statement{DB: stmt.DB}
	if err := form.Parse(stmt.Dest); err != nil {
		return nil, err
	}
	field := form.Schema.LookUpField(column.field.DBName)
	if field == nil {
		return nil, nil
	}
	value, zero := field.ValueOf(stmt.Context, dest)
	given := versionColumn{field: field}
	isVersion := column.zeroIsLoaded() && given.shapedAs(field.FieldType) && given.shape == bareVersion
	if zero && !isVersion {
		return nil, nil
	}
	v, err := column.of(value)
	return &v, err
}

// assignedTo is what the caller's own SET assigns to the column, as Set of the generics API makes one.
func assignedTo(stmt *gorm.Statement, column string) (value any, assigned bool) {
	set, _ := stmt.Clauses["SET"].Expression.(clause.Set)
	for i := range set {
		if set[i].Column.Name == column {
			value, assigned = set[i].Value, true
		}
	}
	return value, assigned
}

func (w *versionWrite) inMap(dest map[string]any) (*version, error) {
	field := w.model.column.field
	value, named := dest[field.DBName]
	if !named {
		value, named = dest[field.Name]
	}
	switch {
	case !named:
		return nil, nil
	case w.model.column.mode != railsMode:
		return nil, fmt.Errorf("gormlock: %s.%s: an update cannot assign the version: to name the expected one use ExpectVersion", w.model.schema.Name, field.Name)
	case value == nil:
		return nil, fmt.Errorf("gormlock: %s.%s: the version cannot be NULL", w.model.schema.Name, field.Name)
	}
	if _, ok := value.(clause.Expression); ok {
		return nil, fmt.Errorf("gormlock: %s.%s: the version cannot be an expression", w.model.schema.Name, field.Name)
	}
	v, err := w.model.column.of(value)
	return &v, err
}

// arm lets the builders take part.
func (w *versionWrite) arm(stmt *gorm.Statement) {
	w.armed = true
	if w.returning.wanted() {
		w.returning.install(w, stmt)
	}
}

// checkVersionsAfterUpdate compares what was written with what was to be, before associations are saved.
func checkVersionsAfterUpdate(db *gorm.DB) {
	refuseNothing(db)
	w := versionWriteOf(db.Statement)
	if w == nil {
		return
	}
	w.returning.collect(db.Statement)
	w.settle(db)
}

// refuseNothing fails an update that sets nothing, of which GORM makes no statement: what it expects of the row would not
// be looked at.
func refuseNothing(db *gorm.DB) {
	if db.Error == nil && db.Statement.SQL.Len() == 0 && versionIntentOf(db.Statement).compares() {
		fail(db, fmt.Errorf("gormlock: update %s: nothing is set, so ExpectVersion and IfUnchanged compare nothing: Touch or VerifyVersion does", tableName(db.Statement)))
	}
}
