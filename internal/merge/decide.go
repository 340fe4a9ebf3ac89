package merge

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/compare"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// decide returns the columns to write, or the conflict. It asks the server about columns that seem to have changed on both sides. It also asks
// about values that may be equal although they are written differently, and about fields that may hold only a part of the column.
func (s *save) decide(read *gorm.DB, theirs reflect.Value) (map[string]bool, error) {
	mine := map[string]bool{}
	var asked []*schema.Field
	for _, field := range s.columns {
		k := s.kindOf(read.Statement, field)
		here := k.compare(s.base, s.mine)
		if here == same {
			continue
		}
		switch there := k.compare(s.base, theirs); {
		case k.whole && here == different && there == same:
			mine[field.DBName] = true
		case k.whole && here == different && k.compare(s.mine, theirs) == same:
		default:
			asked = append(asked, field)
		}
	}
	if len(asked) == 0 {
		return mine, nil
	}
	return mine, s.ask(read, theirs, asked, mine)
}

// ask asks the server, and adds to mine the columns that must be written.
func (s *save) ask(read *gorm.DB, theirs reflect.Value, columns []*schema.Field, mine map[string]bool) error {
	answers, err := compare.Row(read, s.model.Schema, s.key, columns, s.base, s.mine)
	if err != nil {
		return err
	}
	conflict := fault.Conflict{Table: statement.TableName(read.Statement), Row: s.name(read.Statement)}
	for i, field := range columns {
		is, k := answers[i], s.kindOf(read.Statement, field)
		asRead := k.compare(s.base, theirs) == same
		switch {
		case is.BaseIsMine, is.RowIsMine, is.RowIsNull && k.compare(s.mine, theirs) == same:
		case is.RowIsBase, asRead && (is.RowIsNull || s.isUnwritten(field, theirs)):
			mine[field.DBName] = true
		case asRead:
			return fmt.Errorf("gormlock: %s: %s was changed, and its %s is more than %s.%s holds, so that nothing says what of it was: write it with Save, or give the field a type that holds all of the column",
				call, s.name(read.Statement), field.DBName, s.model.Schema.Name, field.Name)
		default:
			conflict.Columns = append(conflict.Columns, fault.ConflictColumn{
				Column: field.DBName, Base: inField(field, s.base), Mine: inField(field, s.mine), Theirs: inField(field, theirs),
			})
		}
	}
	if len(conflict.Columns) > 0 {
		return conflict.Err()
	}
	return nil
}

// madeOver returns the conflict if a hook, perhaps because of a change in mine, set a column to another value than other writers did.
func (s *save) madeOver(stmt *gorm.Statement, theirs reflect.Value, mine map[string]bool) error {
	if !s.inputs {
		return nil
	}
	conflict := fault.Conflict{Table: statement.TableName(stmt), Row: s.name(stmt)}
	for _, field := range s.columns {
		k := s.kindOf(stmt, field)
		if !mine[field.DBName] && k.compare(s.mine, theirs) != same && k.compare(s.base, theirs) != same {
			conflict.Columns = append(conflict.Columns, fault.ConflictColumn{
				Column: field.DBName, Base: inField(field, s.base), Mine: inField(field, s.mine), Theirs: inField(field, theirs),
			})
		}
	}
	if len(conflict.Columns) == 0 {
		return nil
	}
	return conflict.Err()
}

// isUnwritten reports whether the row is still at the version of base, and every write of this column moves the version.
func (s *save) isUnwritten(field *schema.Field, theirs reflect.Value) bool {
	v := s.model.Column
	return v != nil && !s.model.Unversioned[field.DBName] && v.Read(theirs).Equal(v.Read(s.base))
}

// refuseUnwritable fails the save if mine changed a column that the model cannot read or write.
func (s *save) refuseUnwritable(stmt *gorm.Statement) error {
	for _, field := range s.columns {
		if (!field.Updatable || !field.Readable) && s.kindOf(stmt, field).compare(s.base, s.mine) != same {
			return fmt.Errorf("gormlock: %s: %s.%s differs from base, and the model does not both read and write the column: leave it as it is in base",
				call, s.model.Schema.Name, field.Name)
		}
	}
	return nil
}

// inField returns the value of a field in a struct.
func inField(field *schema.Field, row reflect.Value) any {
	if place := statement.Place(field, row); place.IsValid() {
		return place.Interface()
	}
	return nil
}
