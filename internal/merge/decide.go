package merge

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/statement"
)

// decide returns the columns that are to be written, or the conflict. The server is asked only about columns that seem to have
// been changed on both sides: it knows which values are the same to it.
func (s *save) decide(read *gorm.DB, theirs reflect.Value) (map[string]bool, error) {
	mine := map[string]bool{}
	var both []*schema.Field
	for _, field := range s.columns {
		had, has := s.value(read.Statement, field, s.base), s.value(read.Statement, field, s.mine)
		if isSame(had, has) {
			continue
		}
		switch is := s.value(read.Statement, field, theirs); {
		case isSame(is, had):
			mine[field.DBName] = true
		case !isSame(is, has):
			both = append(both, field)
		}
	}
	if len(both) == 0 {
		return mine, nil
	}
	asked, err := guard.Compare(read, s.model.Schema, s.key, both, s.base, s.mine)
	if err != nil {
		return nil, err
	}
	conflict := fault.Conflict{Table: statement.TableName(read.Statement), Row: s.name(read.Statement)}
	for i, field := range both {
		switch {
		case asked[i].BaseIsMine, asked[i].RowIsMine:
		case asked[i].RowIsBase:
			mine[field.DBName] = true
		default:
			conflict.Columns = append(conflict.Columns, fault.ConflictColumn{
				Column: field.DBName, Base: inField(field, s.base), Mine: inField(field, s.mine), Theirs: inField(field, theirs),
			})
		}
	}
	if len(conflict.Columns) > 0 {
		return nil, conflict.Err()
	}
	return mine, nil
}

// refuseUnwritable fails the save where mine changed a column that the model cannot read or write.
func (s *save) refuseUnwritable(stmt *gorm.Statement) error {
	for _, field := range s.columns {
		if (!field.Updatable || !field.Readable) && !isSame(s.value(stmt, field, s.base), s.value(stmt, field, s.mine)) {
			return fmt.Errorf("gormlock: %s: %s.%s differs from base, and the model does not both read and write the column: leave it as it is in base",
				call, s.model.Schema.Name, field.Name)
		}
	}
	return nil
}

// inField is what a struct holds in a field.
func inField(field *schema.Field, row reflect.Value) any {
	if place := statement.Place(field, row); place.IsValid() {
		return place.Interface()
	}
	return nil
}

// value is what the statement would send for a column: a time at the column's precision.
func (s *save) value(stmt *gorm.Statement, field *schema.Field, row reflect.Value) any {
	value, _ := field.ValueOf(stmt.Context, row)
	if place := reflect.ValueOf(value); place.Kind() == reflect.Pointer && place.IsNil() {
		return nil
	}
	if valuer, ok := value.(driver.Valuer); ok {
		if sent, err := valuer.Value(); err == nil {
			value = sent
		}
	}
	if t, ok := value.(*time.Time); ok {
		value = *t
	}
	return column.InTick(value, column.TickOf(field))
}

// isSame reports whether two values surely are the same to the server. Those that are written in different ways may be, too.
func isSame(a, b any) bool {
	at, isTime := a.(time.Time)
	bt, areTimes := b.(time.Time)
	if isTime && areTimes {
		_, aZone := at.Zone()
		_, bZone := bt.Zone()
		return at.Equal(bt) && aZone == bZone
	}
	return reflect.DeepEqual(a, b)
}
