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

// reading remembers what the structs held before a query reads into them.
type reading struct{ structs []linked }

// linked is a struct with its links from before it was read.
type linked struct {
	row    reflect.Value
	links  statement.Links
	joined []string // the associations that the query joins
}

const readingClause = "gormlock:belongs_reading"

// Build writes nothing. It makes reading a clause, so that the statement can carry it.
func (*reading) Build(clause.Builder) {}

// BeforeRead remembers what the destination struct belongs to. Slices need nothing, because their elements are always new. of is the model of the
// query.
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

// linksIn are the links of a struct, and of the structs in it that the query joins, because GORM reads into these without replacing them.
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

// AfterRead empties associations if the row that was read belongs to another row. It runs before Preload.
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
