package guard

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/absent"
	"github.com/gormlock/gormlock/internal/compare"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// unchangedColumns is what IfUnchanged compares.
type unchangedColumns struct {
	before  reflect.Value
	names   []string
	columns []*schema.Field
	all     bool // the caller names none
}

// IfUnchanged keeps what the columns hold in before.
func IfUnchanged(before any, names []string) Clause {
	row := reflect.ValueOf(before)
	if row.Kind() != reflect.Pointer || row.IsNil() || row.Elem().Kind() != reflect.Struct {
		return Clause{err: fmt.Errorf("gormlock: IfUnchanged takes a pointer to the struct as it was read, not %s", absent.Type(before))}
	}
	// Keep the values of this moment: the caller may change the struct later, and GORM writes through its pointers.
	kept := reflect.New(row.Elem().Type()).Elem()
	kept.Set(memory.Own(row.Elem()))
	return Clause{change: func(i *Intent) { i.Unchanged = &unchangedColumns{before: kept, names: names} }}
}

// same reports whether both compare the same: a scope may have run twice.
func (u *unchangedColumns) same(other *unchangedColumns) bool {
	return u == other || slices.Equal(inOrder(u.names), inOrder(other.names)) && u.before.Type() == other.before.Type() && reflect.DeepEqual(u.before.Interface(), other.before.Interface())
}

func inOrder(names []string) []string {
	ordered := make([]string, len(names))
	for i, name := range names {
		ordered[i] = strings.ToLower(name)
	}
	slices.Sort(ordered)
	return ordered
}

// of finds the columns in the model.
func (u *unchangedColumns) of(m *model.Model) (*unchangedColumns, error) {
	if u.before.Type() != m.Schema.ModelType {
		return nil, fmt.Errorf("gormlock: IfUnchanged: %s is not the model %s", u.before.Type(), m.Schema.Name)
	}
	found := &unchangedColumns{before: u.before, all: len(u.names) == 0}
	names := u.names
	if found.all {
		names = m.Schema.DBNames
	}
	for _, name := range names {
		field := m.Schema.LookUpField(name)
		switch {
		case field == nil || field.DBName == "":
			return nil, fmt.Errorf("gormlock: IfUnchanged: %s has no column %q", m.Schema.Name, name)
		case !field.Readable && found.all:
			continue
		case !field.Readable:
			return nil, fmt.Errorf("gormlock: IfUnchanged: %s.%s cannot be compared: its tag keeps GORM from reading the column", m.Schema.Name, field.Name)
		}
		found.columns = append(found.columns, field)
		found.names = append(found.names, field.DBName)
	}
	return found, nil
}

// leaveOut leaves out what is no column of the table, if the caller names none.
func (u *unchangedColumns) leaveOut(p *plan, stmt *gorm.Statement) {
	if u == nil || !u.all || !slices.ContainsFunc(u.columns, statement.IsComputed) {
		return
	}
	u.columns = slices.DeleteFunc(u.columns, func(field *schema.Field) bool { return !isColumn(stmt, p.model, field) })
	u.names = u.names[:0]
	for _, field := range u.columns {
		u.names = append(u.names, field.DBName)
	}
}

// isOf returns the error of a struct that was read from another row than the one that is written. A struct without a key names
// none: it may be made of a form.
func (u *unchangedColumns) isOf(p *plan, stmt *gorm.Statement) error {
	if u == nil || len(p.rows) != 1 || stmt.DryRun {
		return nil
	}
	before, _ := statement.KeyOf(stmt, p.model.Schema, u.before)
	key := p.named(stmt, &p.rows[0]).Key
	if before == nil || key == nil || statement.KeyName(before) == statement.KeyName(key) {
		return nil
	}
	stored, err := statement.Stored(stmt.DB, p.model.Schema, [][]any{before, key}) // which may be one key in two spellings
	if err != nil {
		return err
	}
	if stored[1] == nil || stored[0] != nil && statement.KeyName(stored[0]) == statement.KeyName(stored[1]) {
		return nil // or the row is gone, which the write says
	}
	return fmt.Errorf("gormlock: IfUnchanged: %s is to be written, and before is %s: give it the struct as it was read from the same row",
		p.rowName(stmt, key), p.rowName(stmt, before))
}

func (*unchangedColumns) owns(string) bool { return false }

func (*unchangedColumns) assign(_ builder, written bool) bool { return written }

func (*unchangedColumns) insert(builder, *clause.Values) {}

func (*unchangedColumns) conflict(builder, *clause.OnConflict) {}

// hold writes the condition that the columns have their old values.
func (u *unchangedColumns) hold(b builder) {
	for _, field := range u.columns {
		if kind := b.DataTypeOf(field); dialect.Of(b.DB).IsInexact(kind) {
			fault.Add(b.DB, fmt.Errorf("gormlock: IfUnchanged: %s.%s is a %s, of which the server does not send what it holds: make it a double, or name the other columns",
				b.draft.model.Schema.Name, field.Name, kind))
		}
		c := compare.Of(b.SQL, b.Table, field)
		b.Text(" AND ")
		c.Held(u.before)
	}
}

// why returns the error of a changed column: the row exists, at the right version. If the server says that it is as it was, something
// else kept it.
func (u *unchangedColumns) why(j *judge, stmt *gorm.Statement, row *Row, current reflect.Value) error {
	is := func(q *gorm.DB) *gorm.DB {
		return q.Where(KeyIn(j.model.Schema, [][]any{row.Key})).Where(asExpected{&j.draft}).Limit(1)
	}
	if same, err := j.lookWhere(stmt.DB, j.columnsToLookAt(), is); err == nil && len(same) > 0 && !j.where.filtered {
		return fmt.Errorf("gormlock: %s: %w", j.rowName(stmt, row.Key), errNotWritten)
	}
	e := j.stale(stmt, row, nil, false)
	if j.version.is() {
		e.Own = hasLeft(stmt, j.model, row.name, j.version.Read(u.before), false)
	}
	if j.version.is() && j.version.checked {
		e.Actual = j.version.Any(j.version.Read(current))
	}
	e.Columns = u.names
	return e.Err()
}
