package gormlock

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// unchangedColumns is what IfUnchanged compares.
type unchangedColumns struct {
	before  reflect.Value
	names   []string
	columns []*schema.Field
}

// IfUnchanged lets an update or delete write its row only while the named columns have the values they have in before,
// a pointer to the struct as it was read: for tables without a version. Names are of fields or columns; none means all
// columns. NULL equals NULL, json is compared as jsonb, times at the precision of their column. Where a column changed
// the statement fails with [ErrStale]. It belongs on the write itself, as [ExpectVersion] does.
func IfUnchanged(before any, names ...string) VersionClause {
	row := reflect.ValueOf(before)
	if row.Kind() != reflect.Pointer || row.IsNil() || row.Elem().Kind() != reflect.Struct {
		return VersionClause{err: fmt.Errorf("gormlock: IfUnchanged takes a pointer to the struct as it was read, not %T", before)}
	}
	// What is compared is what was there at this moment: the caller may go on to change the struct.
	kept := reflect.New(row.Elem().Type()).Elem()
	kept.Set(row.Elem())
	detach(kept)
	return VersionClause{change: func(i *versionIntent) { i.unchanged = &unchangedColumns{before: kept, names: names} }}
}

// detach gives a struct its own copies of what stands behind its pointers and slices: GORM writes through them, before
// the columns are compared.
func detach(row reflect.Value) {
	for i := range row.NumField() {
		field := row.Field(i)
		switch {
		case !field.CanSet():
		case field.Kind() == reflect.Struct:
			detach(field)
		case field.Kind() == reflect.Pointer && !field.IsNil():
			own := reflect.New(field.Type().Elem())
			own.Elem().Set(field.Elem())
			if row.Type().Field(i).Anonymous && own.Elem().Kind() == reflect.Struct {
				detach(own.Elem())
			}
			field.Set(own)
		case field.Kind() == reflect.Slice && !field.IsNil():
			own := reflect.MakeSlice(field.Type(), field.Len(), field.Len())
			reflect.Copy(own, field)
			field.Set(own)
		}
	}
}

// of finds the columns in the model.
func (u *unchangedColumns) of(m *versionedModel) (*unchangedColumns, error) {
	if u.before.Type() != m.schema.ModelType {
		return nil, fmt.Errorf("gormlock: IfUnchanged: %s is not the model %s", u.before.Type(), m.schema.Name)
	}
	found := &unchangedColumns{before: u.before}
	names := u.names
	if len(names) == 0 {
		names = m.schema.DBNames
	}
	for _, name := range names {
		field := m.schema.LookUpField(name)
		if field == nil || field.DBName == "" || !field.Readable {
			return nil, fmt.Errorf("gormlock: IfUnchanged: %s has no column %q", m.schema.Name, name)
		}
		found.columns = append(found.columns, field)
		found.names = append(found.names, field.DBName)
	}
	return found, nil
}

func (u *unchangedColumns) write(_ *versionWrite, stmt *gorm.Statement) {
	same := " IS "
	if isPostgres(stmt.DB) {
		same = " IS NOT DISTINCT FROM "
	}
	for _, field := range u.columns {
		value, _ := field.ValueOf(stmt.Context, u.before)
		if isPostgres(stmt.DB) {
			value = inTick(value, tickOf(field))
		}
		cast := ""
		if isPostgres(stmt.DB) && strings.EqualFold(strings.TrimSpace(stmt.DataTypeOf(field)), "json") {
			cast = "::jsonb"
		}
		_, _ = stmt.WriteString(" AND ")
		stmt.QuoteTo(&stmt.SQL, clause.Column{Table: stmt.Table, Name: field.DBName})
		_, _ = stmt.WriteString(cast)
		_, _ = stmt.WriteString(same)
		stmt.AddVar(&stmt.SQL, value)
		_, _ = stmt.WriteString(cast)
	}
}

// inTick is a time at the precision of its column, and any other value as it is.
func inTick(value any, tick time.Duration) any {
	switch t := value.(type) {
	case time.Time:
		return t.Truncate(tick)
	case *time.Time:
		if t != nil {
			return t.Truncate(tick)
		}
	}
	return value
}
