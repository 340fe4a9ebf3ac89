package gormlock

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// LockRow locks the row of a loaded struct and reads it again, so that the struct is what the row is now and stays so
// until the transaction ends.
//
//	err := gormlock.LockRow(tx, &acct)
//
// Columns are overwritten, changes not yet saved too; associations that tx does not load and fields that are no columns
// are left as they are, but for what AfterFind does to them. The strength is [ForUpdate] unless a [Strength] is given.
// [Try] is one round trip for a row that is free. A row that is gone, or deleted softly, or that conditions on tx leave
// out, is gorm.ErrRecordNotFound. On any error columns and associations are as they were. What has no place on tx is an
// error: Select and Omit of columns, the Model of another type.
//
// All that [WithRowLock] says holds here too, except that nothing can be skipped.
func LockRow(tx *gorm.DB, row any, opts ...RowLockOption) error {
	if err := usable(tx); err != nil {
		return err
	}
	value := reflect.ValueOf(row)
	if value.Kind() != reflect.Pointer || value.IsNil() || value.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("gormlock: LockRow takes a pointer to a struct, this is %T", row)
	}
	lock, err := lockOfRow("LockRow", opts)
	if err != nil {
		return err
	}
	query, s, err := queryOfRows("LockRow", tx, row)
	if err != nil {
		return err
	}
	key, _ := keyOf(query.Statement, s, value.Elem())
	if key == nil {
		return fmt.Errorf("gormlock: LockRow: %s without a primary key: %w", s.Name, gorm.ErrPrimaryKeyRequired)
	}
	r := rowToLock{schema: s, key: key}
	given := holdRow(s, value.Elem())
	read, err := r.read(query, value, lock)
	if err != nil || read.DryRun {
		given.putBack()
	}
	return err
}

// lockOfRow is the lock for a row that must not be skipped.
func lockOfRow(call string, opts []RowLockOption) (RowLockClause, error) {
	lock := newRowLock(opts)
	if lock.err == nil && lock.skip {
		lock.err = fmt.Errorf("%w: %s locks all it is given, use Try or a query with WithSkipLocked instead of Skip", ErrOption, call)
	}
	return lock, lock.err
}

// queryOfRows is a query of the model of rows, with all that tx asks for besides.
func queryOfRows(call string, tx *gorm.DB, rows any) (*gorm.DB, *schema.Schema, error) {
	query := beside(tx)
	model := &gorm.Statement{DB: tx}
	if err := model.Parse(rows); err != nil {
		return nil, nil, err
	}
	if named := query.Statement.Model; named != nil && modelOf(named) != model.Schema.ModelType {
		return nil, nil, fmt.Errorf("gormlock: %s: the Model on tx is %T, the rows are of %s", call, named, model.Schema.Name)
	}
	return query.Model(rows).Session(&gorm.Session{}), model.Schema, nil
}

// wholeRows is a scope that refuses what does not go with reading rows again.
func wholeRows(call string, s *schema.Schema) func(*gorm.DB) *gorm.DB {
	return lastScope(func(db *gorm.DB) {
		stmt := db.Statement
		switch {
		case stmt.Model == nil:
			fail(db, fmt.Errorf("gormlock: %s: a scope returned another query than it was given", call))
		case modelOf(stmt.Model) != s.ModelType:
			fail(db, fmt.Errorf("gormlock: %s: a scope changed the model to %T", call, stmt.Model))
		case !selectsAll(stmt, s) || slices.ContainsFunc(stmt.Omits, func(name string) bool { return !namesAssociation(s, name) }):
			fail(db, fmt.Errorf("gormlock: %s: Select and Omit have no place in it, which reads whole rows", call))
		}
	})
}

// selectsAll tells whether the query selects all columns, as it does where GORM has put them down in an earlier run.
func selectsAll(stmt *gorm.Statement, s *schema.Schema) bool {
	selected, given := stmt.Clauses["SELECT"]
	columns, plain := selected.Expression.(clause.Select)
	switch {
	case len(stmt.Selects) > 0:
		return len(stmt.Selects) == 1 && stmt.Selects[0] == "*"
	case !given || selected.Expression == nil:
		return true
	case !plain || columns.Expression != nil:
		return false
	case len(columns.Columns) == 0:
		return true
	}
	missing := map[string]bool{}
	for name, field := range s.FieldsByDBName {
		missing[name] = field.Readable
	}
	for _, column := range columns.Columns {
		if !column.Raw && (column.Table == "" || column.Table == clause.CurrentTable || column.Table == stmt.Table) && (column.Alias == "" || column.Alias == column.Name) {
			missing[column.Name] = false
		}
	}
	for _, is := range missing {
		if is {
			return false
		}
	}
	return true
}

// namesAssociation tells whether a name in Omit is of associations, which are no columns.
func namesAssociation(s *schema.Schema, name string) bool {
	name, _, _ = strings.Cut(name, ".")
	return name == clause.Associations || s.Relationships.Relations[name] != nil
}

// heldRow is what a struct held in the fields that a read may change.
type heldRow struct{ places, values []reflect.Value }

// holdRow empties the columns of a struct, for GORM leaves alone what it reads NULL for, and keeps what they held, and its
// associations. What a query computes stays: it is in no table.
func holdRow(s *schema.Schema, row reflect.Value) *heldRow {
	h := &heldRow{}
	for _, field := range s.FieldsByDBName {
		if place := h.hold(field, row); place.IsValid() && field.Readable && !isComputed(field) {
			place.SetZero()
		}
	}
	for _, relation := range ownRelations(s) {
		h.hold(relation.Field, row)
	}
	return h
}

// isComputed tells whether a field takes what another query works out: it is read, never written, and in no migration.
func isComputed(field *schema.Field) bool {
	return field.IgnoreMigration && !field.Creatable && !field.Updatable
}

// hold keeps what a field holds, or that an embedded struct on the way to it is nil.
func (h *heldRow) hold(field *schema.Field, row reflect.Value) reflect.Value {
	place := placeOf(field, row)
	kept := place
	for end := len(field.StructField.Index) - 1; !kept.IsValid(); end-- {
		embedded := *field
		embedded.StructField.Index = field.StructField.Index[:end]
		kept = placeOf(&embedded, row)
	}
	value := reflect.New(kept.Type()).Elem()
	value.Set(kept)
	h.places, h.values = append(h.places, kept), append(h.values, value)
	return place
}

func (h *heldRow) putBack() {
	for i, place := range h.places {
		place.Set(h.values[i])
	}
}

// rowToLock is a row by its primary key.
type rowToLock struct {
	schema *schema.Schema
	table  string // as the query calls it
	key    []any
}

// read locks the row and reads it into the struct that row points to.
func (r rowToLock) read(query *gorm.DB, row reflect.Value, lock RowLockClause) (*gorm.DB, error) {
	tries := lock.try && !lock.preloaded
	if tries { // the row is skipped if it is locked: unlike NOWAIT that aborts nothing, so that it needs no savepoint
		lock.try, lock.skip, lock.began = false, true, pluginOf(query).began()
	}
	forgetJoined := lastScope(func(db *gorm.DB) { r.forgetJoined(db.Statement, row.Elem()) })
	read := query.Clauses(lock).Scopes(wholeRows("LockRow", r.schema), narrowed(r.isKey()...), forgetJoined).Take(row.Interface())
	r.table = tableName(read.Statement)
	switch err := read.Error; {
	case err != nil && tries && errors.Is(err, gorm.ErrRecordNotFound):
		return nil, r.name(r.skipped(query, lock, err))
	case err != nil:
		return nil, r.name(err)
	case read.DryRun:
		return read, nil
	}
	return read, r.mustBe(read, row.Elem())
}

// forgetJoined empties the associations that the query joins: where there is none any more, GORM leaves them alone too.
func (r rowToLock) forgetJoined(stmt *gorm.Statement, row reflect.Value) {
	for _, join := range stmt.Joins {
		name, _, _ := strings.Cut(join.Name, ".")
		if relation := r.schema.Relationships.Relations[name]; relation != nil {
			if place := placeOf(relation.Field, row); place.IsValid() {
				place.SetZero()
			}
		}
	}
}

// skipped asks whether a row that was not read is there, and locked then.
func (r rowToLock) skipped(query *gorm.DB, lock RowLockClause, notFound error) error {
	var there []map[string]any // whatever joins add
	probe := query.Select("1").Scopes(narrowed(r.isKey()...)).Limit(1)
	probe.Statement.Preloads = nil
	switch probe = probe.Find(&there); {
	case probe.Error != nil:
		return probe.Error
	case probe.RowsAffected == 0:
		return notFound
	}
	refused := &rowLockError{state: ErrNotAcquired}
	lock.tell(query.Statement.Context, pluginOf(query), r.table, 0, refused)
	return refused
}

// mustBe fails where what another plugin did to the conditions has let another row through. The server may write the
// key in another way than the caller: then it is asked which row that is.
func (r rowToLock) mustBe(read *gorm.DB, row reflect.Value) error {
	got, _ := keyOf(read.Statement, r.schema, row)
	if spelling(got) == spelling(r.key) {
		return nil
	}
	stored, err := r.asStored(read)
	if err == nil && spelling(got) != stored {
		err = fmt.Errorf("gormlock: lock %s: the query found %s", r, rowToLock{r.schema, r.table, got})
	}
	return err
}

// asStored is the spelling of the key as the server writes it, and that of no key where the row is gone.
func (r rowToLock) asStored(read *gorm.DB) (string, error) {
	row := reflect.New(r.schema.ModelType)
	query := read.Session(&gorm.Session{NewDB: true, SkipHooks: true}).Unscoped().Model(row.Interface()).Select(r.schema.PrimaryFieldDBNames)
	sameTable(query.Statement, read.Statement)
	if err := query.Clauses(clause.Where{Exprs: r.isKey()}).Limit(1).Find(row.Interface()).Error; err != nil {
		return "", err
	}
	key, _ := keyOf(read.Statement, r.schema, row.Elem())
	return spelling(key), nil
}

// isKey is the condition that a row is this one.
func (r rowToLock) isKey() []clause.Expression {
	where := make([]clause.Expression, len(r.key))
	for i, field := range r.schema.PrimaryFields {
		where[i] = clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: field.DBName}, Value: r.key[i]}
	}
	return where
}

// String is the row for people: accounts id=7.
func (r rowToLock) String() string {
	key := map[string]any{}
	for i, field := range r.schema.PrimaryFields {
		if i < len(r.key) {
			key[field.DBName] = r.key[i]
		}
	}
	return rowName(r.table, r.schema.PrimaryFieldDBNames, key)
}

// name says in err which row it is about.
func (r rowToLock) name(err error) error {
	var lock *rowLockError
	switch {
	case errors.As(err, &lock):
		named := *lock
		named.what = r.String()
		return &named
	case errors.Is(err, gorm.ErrRecordNotFound):
		return fmt.Errorf("gormlock: lock %s: %w", r, gorm.ErrRecordNotFound)
	default:
		return err
	}
}
