package merge

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/statement"
)

// other is a field that is not a column and that AfterFind has set differently for the row that others wrote.
type other struct{ place, was, theirs reflect.Value }

// eachOther visits the fields that are neither columns nor associations, if AfterFind may set them.
func (s *save) eachOther(tx *gorm.DB, visit func(*schema.Field)) {
	if !s.model.Schema.AfterFind || tx.Statement.SkipHooks {
		return
	}
	related := statement.OwnRelations(s.model.Schema)
	for _, field := range s.model.Schema.Fields {
		if field.DBName == "" && !slices.ContainsFunc(related, func(r *schema.Relationship) bool { return r.Field == field }) {
			visit(field)
		}
	}
}

// mergeRest merges the fields that are not columns. A hook before the write may compute columns from them, and would write what the row had when
// base was read. A field that both sides changed is a conflict.
func (s *save) mergeRest(read *gorm.DB, theirs reflect.Value) (rest []other, err error) {
	conflict := fault.Conflict{Table: statement.TableName(read.Statement), Row: s.name(read.Statement)}
	s.eachOther(read, func(field *schema.Field) {
		base, mine, there := statement.Place(field, s.base), statement.Place(field, s.mine), statement.Place(field, theirs)
		if !base.IsValid() || !mine.IsValid() || !there.IsValid() || !mine.CanSet() || alike(base, there) || alike(mine, there) {
			return
		}
		if !alike(base, mine) {
			conflict.Columns = append(conflict.Columns, fault.ConflictColumn{Column: field.Name, Base: base.Interface(), Mine: mine.Interface(), Theirs: there.Interface()})
			return
		}
		rest = append(rest, other{mine, memory.Own(mine), there})
	})
	if len(conflict.Columns) > 0 {
		return nil, conflict.Err()
	}
	return rest, nil
}

func (b *step) takeRest() {
	for _, o := range b.rest {
		o.place.Set(memory.Own(o.theirs))
	}
}

// putRestBack restores the fields that nobody has changed since.
func (b *step) putRestBack() {
	for _, o := range b.rest {
		if alike(o.place, o.theirs) {
			o.place.Set(o.was)
		}
	}
}

// changesInputs reports whether mine changed a field that is not a column and from which a hook may compute one.
func (s *save) changesInputs(stmt *gorm.Statement) bool {
	if stmt.SkipHooks || !s.model.Schema.BeforeSave && !s.model.Schema.BeforeUpdate {
		return false
	}
	columns := map[string]bool{}
	for _, field := range s.model.Schema.Fields {
		columns[placeName(field.StructField.Index)] = field.DBName != ""
	}
	return differAside(columns, "", s.base, s.mine)
}

// differAside reports whether two structs differ in a field that is not a column.
func differAside(columns map[string]bool, above string, base, mine reflect.Value) bool {
	within := func(place string) bool {
		for column, is := range columns {
			if is && strings.HasPrefix(column, place+".") {
				return true
			}
		}
		return false
	}
	for i := range mine.NumField() {
		place := above + placeName([]int{i})
		was, is := base.Field(i), mine.Field(i)
		switch {
		case columns[place]:
		case within(place):
			if was, is = reflect.Indirect(was), reflect.Indirect(is); was.IsValid() && is.IsValid() && differAside(columns, place, was, is) {
				return true
			}
		case is.CanInterface() && !alike(was, is), !is.CanInterface() && fmt.Sprintf("%#v", was) != fmt.Sprintf("%#v", is):
			return true
		}
	}
	return false
}

// placeName names the place of a field: its indexes, and those of the structs in which it is embedded. GORM stores the indexes of pointers as
// negative numbers.
func placeName(indexes []int) string {
	var name strings.Builder
	for _, i := range indexes {
		fmt.Fprint(&name, ".", max(i, -i-1))
	}
	return name.String()
}
