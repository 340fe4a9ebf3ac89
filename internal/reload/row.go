package reload

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/absent"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/rowlock"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/whereabouts"
	"github.com/gormlock/gormlock/internal/xact"
)

// Row locks the row of a loaded struct and reads it again.
func Row(tx *gorm.DB, row any, lock rowlock.Lock) error {
	if err := install.Usable(tx); err != nil {
		return err
	}
	value := reflect.ValueOf(row)
	if value.Kind() != reflect.Pointer || value.IsNil() || value.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("gormlock: LockRow takes a pointer to a struct, this is %s", absent.Type(row))
	}
	if err := mustLock("LockRow", lock); err != nil {
		return err
	}
	query, r, err := rowOf("LockRow", tx, value)
	if err != nil {
		return err
	}
	links := statement.LinksOf(statement.OwnRelations(r.schema), value.Elem())
	m := model.OfSchema(query, r.schema)
	memory.Recover(m, value.Elem())
	if m.Column != nil {
		statement.OwnPath(m.Column.Field, value.Elem())
	}
	journal.AtWork(query)
	defer journal.Leave(query) // what the server has undone is undone in memory after the struct was restored
	given := holdRow(r.schema, value.Elem())
	read, err := r.read(query, value, lock)
	if err != nil || read.DryRun {
		given.putBack()
		whereabouts.KeepTriedIn(query.Statement, m, row)
		return err
	}
	links.Empty(value.Elem(), joined(read.Statement)...)
	return nil
}

// Into reads a row into a struct that holds nothing but the row's key, for the call of this name. It locks the row unless lock is the
// zero Lock.
func Into(call string, tx *gorm.DB, row reflect.Value, lock rowlock.Lock) (*gorm.DB, error) {
	query, r, err := rowOf(call, tx, row)
	if err != nil {
		return nil, err
	}
	return r.read(query, row, lock)
}

// rowOf is the row with the struct's key, and a query of its model.
func rowOf(call string, tx *gorm.DB, row reflect.Value) (*gorm.DB, rowToLock, error) {
	query, s, err := queryOfRows(call, tx, row.Interface())
	if err != nil {
		return nil, rowToLock{}, err
	}
	key, _ := statement.KeyOf(query.Statement, s, row.Elem())
	if key == nil {
		return nil, rowToLock{}, fmt.Errorf("gormlock: %s: %s has no primary key: %w", call, s.Name, gorm.ErrPrimaryKeyRequired)
	}
	return query, rowToLock{call: call, schema: s, key: key}, nil
}

// mustLock refuses a lock that would skip a row.
func mustLock(call string, lock rowlock.Lock) error {
	if lock.Err == nil && lock.Skip {
		return fmt.Errorf("%w: %s locks every row it is given, so Skip cannot be used: use Try, or a query with WithSkipLocked", fault.ErrOption, call)
	}
	return lock.Err
}

// queryOfRows is a query of the model of rows, with everything that tx carries. It can be executed once.
func queryOfRows(call string, tx *gorm.DB, rows any) (*gorm.DB, *schema.Schema, error) {
	query := statement.Beside(tx)
	parsed := &gorm.Statement{DB: tx}
	if err := parsed.Parse(rows); err != nil {
		return nil, nil, err
	}
	if named := query.Statement.Model; named != nil && statement.ModelOf(named) != parsed.Schema.ModelType {
		return nil, nil, fmt.Errorf("gormlock: %s: the Model on tx is %T, and the rows are of %s: leave Model out", call, named, parsed.Schema.Name)
	}
	return query.Model(rows), parsed.Schema, nil
}

// wholeRows is a scope that refuses what is incompatible with reading whole rows again.
func wholeRows(call string, s *schema.Schema) func(*gorm.DB) *gorm.DB {
	return statement.LastScope(func(db *gorm.DB) { mustBeWhole(call, s, db) })
}

func mustBeWhole(call string, s *schema.Schema, db *gorm.DB) {
	stmt := db.Statement
	switch {
	case stmt.Model == nil:
		fault.Add(db, fmt.Errorf("gormlock: %s: a scope returned another query than the one it was given", call))
	case statement.ModelOf(stmt.Model) != s.ModelType:
		fault.Add(db, fmt.Errorf("gormlock: %s: a scope changed the model to %T", call, stmt.Model))
	case !selectsAll(stmt, s) || slices.ContainsFunc(stmt.Omits, func(name string) bool { return !statement.NamesAssociation(s, name) }):
		fault.Add(db, fmt.Errorf("gormlock: %s: it reads whole rows: leave out Select and Omit", call))
	}
}

// selectsAll reports whether the query selects all columns. They may be listed, because GORM lists them when the statement has run before.
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

// heldRow is the old content of the fields of a struct that a read may change.
type heldRow struct{ places, values []reflect.Value }

// holdRow empties the columns of a struct, because GORM leaves a field as it is if it reads NULL for it. It keeps the old values and the
// associations. Fields that only some queries compute stay, because they are in no table.
func holdRow(s *schema.Schema, row reflect.Value) *heldRow {
	own := statement.OwnRelations(s)
	most := len(s.FieldsByDBName) + len(own)
	h := &heldRow{make([]reflect.Value, 0, most), make([]reflect.Value, 0, most)}
	for _, field := range s.FieldsByDBName {
		if place := h.hold(field, row); place.IsValid() && field.Readable && !statement.IsComputed(field) {
			place.SetZero()
		}
	}
	for _, relation := range own {
		h.hold(relation.Field, row)
	}
	return h
}

// hold keeps the value of a field, or the nil pointer of an embedded struct on the way to it.
func (h *heldRow) hold(field *schema.Field, row reflect.Value) reflect.Value {
	place := statement.Place(field, row)
	kept := place
	for end := len(field.StructField.Index) - 1; !kept.IsValid(); end-- {
		embedded := *field
		embedded.StructField.Index = field.StructField.Index[:end]
		kept = statement.Place(&embedded, row)
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
	call   string // the name of the caller's function
	schema *schema.Schema
	table  string // its name in the query
	key    []any
}

// read locks the row and reads it into the struct that row points to.
func (r rowToLock) read(query *gorm.DB, row reflect.Value, lock rowlock.Lock) (*gorm.DB, error) {
	tries := lock.Try && !lock.Preloaded
	if tries { // SKIP LOCKED skips a locked row: unlike NOWAIT it does not abort the transaction, so it needs no savepoint
		lock.Try, lock.Skip, lock.Began = false, true, install.Of(query).Began()
		query = query.Session(&gorm.Session{}) // skipped makes further queries from it
	}
	read := query.Scopes(statement.LastScope(func(db *gorm.DB) {
		mustBeWhole(r.call, r.schema, db)
		mark.NarrowNow(db.Statement, r.isKey()...)
		r.forgetJoined(db.Statement, row.Elem())
		statement.Reload(db.Statement)
		held := lock
		if tries && xact.On(db.Statement) != nil { // with Try there is a savepoint, which frees the advisory lock too
			held.Try, held.Skip = true, false
		}
		if held.Strength != 0 {
			held.PutLast(db.Statement)
		}
	})).Take(row.Interface())
	r.table = statement.TableName(read.Statement)
	switch err := read.Error; {
	case err != nil && tries && xact.On(read.Statement) == nil && errors.Is(err, gorm.ErrRecordNotFound):
		return nil, r.name(r.skipped(query, lock, err))
	case err != nil:
		return nil, r.name(err)
	case read.DryRun:
		return read, nil
	}
	return read, r.mustBe(read, row.Elem())
}

// forgetJoined empties the associations that the query joins, because GORM leaves an association as it is if there is no row for it.
func (r rowToLock) forgetJoined(stmt *gorm.Statement, row reflect.Value) {
	for _, name := range joined(stmt) {
		if relation := r.schema.Relationships.Relations[name]; relation != nil {
			if place := statement.Place(relation.Field, row); place.IsValid() {
				place.SetZero()
			}
		}
	}
}

// skipped asks whether a row that was not read exists. If it does, it is locked by somebody else.
func (r rowToLock) skipped(query *gorm.DB, lock rowlock.Lock, notFound error) error {
	var there []map[string]any // maps, because joins add columns
	asked := "1"
	if statement.IsPostgres(query) {
		asked = fmt.Sprintf("coalesce(row_security_active(to_regclass('%s')), false) AS %s", strings.ReplaceAll(query.Statement.Quote(r.table), "'", "''"), policies)
	}
	probe := query.Select(asked).Scopes(mark.Narrow(r.isKey()...)).Limit(1)
	probe.Statement.Preloads = nil
	switch probe = probe.Find(&there); {
	case probe.Error != nil:
		return probe.Error
	case probe.RowsAffected == 0:
		return notFound
	case there[0][policies] == true && r.hiddenByPolicy(query, lock):
		return fmt.Errorf("gormlock: lock %s: a row-level security policy keeps it from being locked", r)
	}
	refused := &rowlock.RefusedError{State: fault.ErrNotAcquired}
	lock.Tell(query.Statement.Context, install.Of(query), r.table, 0, refused)
	return refused
}

// policies is a column that says whether row-level security policies of the table apply to the user.
const policies = "gormlock_policies"

// hiddenByPolicy reports whether a policy, and not somebody's lock, keeps a readable row from being locked. It tries NOWAIT under a
// savepoint: that fails only if somebody holds the row.
func (r rowToLock) hiddenByPolicy(query *gorm.DB, lock rowlock.Lock) bool {
	lock.Try, lock.Skip = true, false
	var there []map[string]any
	err := statement.Nested(query.Session(&gorm.Session{NewDB: true, SkipHooks: true}), func(tx *gorm.DB) error {
		probe := query.Session(&gorm.Session{SkipHooks: true}).Clauses(lock).Select("1").Scopes(mark.Narrow(r.isKey()...)).Limit(1)
		probe.Statement.ConnPool, probe.Statement.Preloads = tx.Statement.ConnPool, nil
		return probe.Find(&there).Error //gormlockvet:ignore outer its ConnPool is that of tx
	})
	return err == nil && len(there) == 0
}

// mustBe fails if the query found another row, because another plugin has changed the conditions. The server may write the
// key differently from the caller: then it is asked how it writes the caller's key.
func (r rowToLock) mustBe(read *gorm.DB, row reflect.Value) error {
	got, _ := statement.KeyOf(read.Statement, r.schema, row)
	if isEqual(got, r.key) || spelling(got) == spelling(r.key) {
		return nil
	}
	stored, err := statement.Stored(read, r.schema, [][]any{r.key})
	if err == nil && (stored[0] == nil || spelling(got) != spelling(stored[0])) {
		err = fmt.Errorf("gormlock: lock %s: the query found %s", r, rowToLock{schema: r.schema, table: r.table, key: got})
	}
	return err
}

// isKey is the condition that a row has this key.
func (r rowToLock) isKey() []clause.Expression {
	where := make([]clause.Expression, len(r.key))
	for i, field := range r.schema.PrimaryFields {
		where[i] = clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: field.DBName}, Value: r.key[i]}
	}
	return where
}

// String names the row for people: accounts id=7.
func (r rowToLock) String() string {
	key := map[string]any{}
	for i, field := range r.schema.PrimaryFields {
		if i < len(r.key) {
			key[field.DBName] = r.key[i]
		}
	}
	return fault.Row(r.table, r.schema.PrimaryFieldDBNames, key)
}

// name adds the name of the row to err.
func (r rowToLock) name(err error) error {
	var lock *rowlock.RefusedError
	switch {
	case errors.As(err, &lock):
		named := *lock
		named.What = r.String()
		return &named
	case errors.Is(err, gorm.ErrRecordNotFound):
		return fmt.Errorf("gormlock: lock %s: %w", r, gorm.ErrRecordNotFound)
	default:
		return err
	}
}

// joined are the associations that a query joins.
func joined(stmt *gorm.Statement) []string {
	var names []string
	for _, join := range stmt.Joins {
		name, _, _ := strings.Cut(join.Name, ".")
		names = append(names, name)
	}
	return names
}
