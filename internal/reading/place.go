package reading

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
	"gorm.io/gorm/utils"

	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/sqltext"
)

// place is where GORM puts a column of a query: a field of a struct, the key of a map, or nowhere.
type place struct {
	within string // of a field: the relations that lead to it
	field  *schema.Field
	key    string
}

// places are the places of the columns of a query, and the models whose versions may be among them.
type places struct {
	of     []place
	names  []string
	models []*model.Model // if the structs are of a model, it is the first
	whole  bool           // the structs are of the first model, so all of their columns count
}

// mayMeet reports whether two columns may have one place, whatever the destination is. A struct may have a field for the version whose name differs
// from the column's. Other names have the same place as in the model.
func mayMeet(models []*model.Model, names []string) bool {
	seen := map[any]bool{}
	for _, name := range names {
		if seen[name] || len(names) > 1 && sqltext.IsGoName(name) {
			return true
		}
		seen[name] = true
		for _, m := range models {
			field := m.Schema.LookUpField(name)
			if field != nil && seen[field] {
				return true
			}
			seen[field] = field != nil
		}
	}
	return false
}

// placesIn looks up the columns as GORM does: by their names, by the names of fields, and by the names that the naming strategy makes of them.
func placesIn(stmt *gorm.Statement, models []*model.Model, names []string, into reflect.Type) places {
	p := places{of: make([]place, len(names)), names: names, models: models}
	switch {
	case into == nil:
	case into.Kind() == reflect.Map || into.Kind() == reflect.Interface:
		for i, name := range names {
			p.of[i].key = name
		}
	case into.Kind() == reflect.Struct:
		row := &gorm.Statement{DB: stmt.DB}
		if row.Parse(reflect.New(into).Interface()) != nil {
			break
		}
		if own := model.OfSchema(stmt.DB, row.Schema); own.Column != nil {
			p.whole, p.models = true, append([]*model.Model{own}, models...)
		}
		for i, name := range names {
			p.of[i] = fieldOf(stmt, row.Schema, name)
		}
	}
	return p
}

// fieldOf is the field of a column, in the struct or in one that is joined.
func fieldOf(stmt *gorm.Statement, s *schema.Schema, column string) place {
	if field := s.LookUpField(column); field != nil && field.Readable {
		return place{field: field}
	}
	names := utils.SplitNestedRelationName(column)
	last := len(names) - 1
	joined := utils.JoinNestedRelationNames(names[:last])
	for _, join := range stmt.Joins {
		if last > 0 && join.Alias == joined {
			names = append(strings.Split(join.Name, "."), names[last])
			last = len(names) - 1
			break
		}
	}
	for _, name := range names[:last] {
		relation := s.Relationships.Relations[name]
		if relation == nil {
			return place{}
		}
		s = relation.FieldSchema
	}
	if field := s.LookUpField(names[last]); field != nil && last > 0 && field.Readable {
		return place{within: strings.Join(names[:last], "."), field: field}
	}
	return place{}
}

// isVersion reports whether an update would use the value in this place as the version of the model.
func (p place) isVersion(m *model.Model) bool {
	if p.field == nil {
		return p.key != "" && m.Schema.LookUpField(p.key) == m.Column.Field
	}
	return carriesVersion(m, p.field.Schema, p.field)
}

// refused returns the error of a query that returns different columns for one place. It only does if the version of a model is in that place, or if
// all columns of the structs count.
func (p places) refused(text string) error {
	for i, at := range p.of {
		first := slices.Index(p.of[:i], at)
		if at == (place{}) || first < 0 || p.isRepeated(text, at) {
			continue
		}
		for n, m := range p.models {
			if n == 0 && p.whole || at.isVersion(m) {
				return fmt.Errorf("gormlock: %s: the query returns two columns %s, of which GORM keeps the last: select the columns by name, as in Select(%q)",
					m.Schema.Name, both(p.names[first], p.names[i]), m.Schema.Table+".*")
			}
		}
	}
	return nil
}

func both(name, other string) string {
	if name == other {
		return strconv.Quote(name)
	}
	return strconv.Quote(name) + " and " + strconv.Quote(other)
}

// isRepeated reports whether all columns of a place are the same column.
func (p places) isRepeated(text string, at place) bool {
	name, n := at.key, 0
	if at.field != nil {
		name = at.field.DBName
	}
	for _, other := range p.of {
		if other == at {
			n++
		}
	}
	return at.within == "" && sqltext.IsRepeated(text, name, n)
}

// unread returns a version that no row has for each column that is a version, and nil for the others.
func (p places) unread() []any {
	none := make([]any, len(p.of))
	for i, at := range p.of {
		for _, m := range p.models {
			if !at.isVersion(m) {
				continue
			}
			column := m.Column
			if at.field != nil {
				if form, holds := column.FormColumn(at.field); holds {
					column = form
				}
			}
			none[i] = column.Any(column.Unread())
			break
		}
	}
	return none
}
