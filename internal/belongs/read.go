package belongs

import (
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/unlinked"
)

// reading is what the structs held that a query reads into.
type reading struct{ structs []linked }

// linked is a struct and its links before it was read.
type linked struct {
	row    reflect.Value
	links  statement.Links
	joined []string // the associations that the query reads along
}

const readingClause = "gormlock:belongs_reading"

// Build makes a reading fit into a statement's clauses, where it is found again. It writes nothing.
func (*reading) Build(clause.Builder) {}

// BeforeRead remembers what the struct that is read into belongs to. The elements of slices are always new. Of is the model of the query.
func BeforeRead(db *gorm.DB, of *model.Model) {
	stmt := db.Statement
	if db.Error != nil || db.DryRun || of == nil {
		return
	}
	row := reflect.ValueOf(stmt.Dest)
	for row.Kind() == reflect.Pointer {
		row = row.Elem()
	}
	if row.Kind() != reflect.Struct || row.Type() != stmt.Schema.ModelType || !row.CanSet() {
		return
	}
	structs := linksIn(db, stmt.Schema, row, "")
	if len(structs) == 0 {
		return
	}
	if !statement.Reloads(stmt) {
		stmt.Clauses[readingClause] = clause.Clause{Expression: &reading{structs}}
	}
}

// linksIn are the links of a struct, and of those in it that the query joins: GORM reads into them as they are.
func linksIn(db *gorm.DB, s *schema.Schema, row reflect.Value, path string) (all []linked) {
	var joined []string
	for _, join := range db.Statement.Joins {
		name, below := strings.CutPrefix(join.Name, path)
		name, _, _ = strings.Cut(name, ".")
		relation := s.Relationships.Relations[name]
		if !below || relation == nil {
			continue
		}
		joined = append(joined, name)
		if place := statement.Place(relation.Field, row); place.IsValid() && reflect.Indirect(place).Kind() == reflect.Struct {
			all = append(all, linksIn(db, relation.FieldSchema, reflect.Indirect(place), path+name+".")...)
		}
	}
	if m := model.OfSchema(db, s); m.Err == nil && m.Column != nil && statement.HoldsAssociation(s, row) {
		all = append(all, linked{row, statement.LinksOf(statement.OwnRelations(s), row), joined})
	}
	return all
}

// AfterRead empties the associations of other rows than those that the row, as it was read, belongs to. Preloading comes
// after it.
func AfterRead(db *gorm.DB) {
	emptyOthers(db)
	unlinked.AfterRead(db)
}

func emptyOthers(db *gorm.DB) {
	c, ok := db.Statement.Clauses[readingClause]
	if !ok {
		return
	}
	delete(db.Statement.Clauses, readingClause)
	r, _ := c.Expression.(*reading)
	for _, read := range r.structs {
		read.links.Empty(read.row, read.joined...)
	}
}
