package children

import (
	"context"
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/statement"
)

// In one save, GORM skips an association if each of its structs was in another association before. But it gives each struct the key of its
// parent in any case.

// graph holds the foreign keys that GORM gives to children in one statement, including all nested associations.
type graph struct {
	root  *gorm.Statement // the statement of the caller
	given map[placeOfKey]given
	moved []placeOfKey // the foreign keys that change
}

// placeOfKey is a foreign key in a struct.
type placeOfKey struct {
	child uintptr
	key   *schema.Field
}

// given is a foreign key that GORM gives to a child.
type given struct {
	relation *schema.Relationship
	child    reflect.Value
	value    string // the new foreign key: the key of the parent
	was      string // the old foreign key
	stored   bool   // the child had it before, or was stored with it
	arrived  bool   // GORM has set it, and has not saved the child's own associations yet
}

const graphSetting = "gormlock:graph" // GORM hands settings on to the statements of associations

func graphOf(stmt *gorm.Statement) *graph {
	value, _ := stmt.Settings.Load(graphSetting)
	g, _ := value.(*graph)
	return g
}

// BeginGraph notes that the statement saves structs with their associations.
func BeginGraph(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || db.DryRun || stmt.Schema == nil || !statement.HasRelations(stmt.Schema) || graphOf(stmt) != nil {
		return
	}
	holds := false
	statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) {
		holds = holds || row.Type() == stmt.Schema.ModelType && statement.HoldsAssociation(stmt.Schema, row)
	})
	if holds {
		stmt.Settings.Store(graphSetting, &graph{root: stmt})
	}
}

// EndGraph runs when all associations are saved. It fails the statement if a child has got a foreign key that was not stored.
func EndGraph(db *gorm.DB) {
	g := begunBy(db.Statement)
	if g == nil || db.Error != nil {
		return
	}
	for _, at := range g.moved {
		one := g.given[at]
		if one.stored || one.now(at.key) == one.was || g.storedByTwin(at) {
			continue
		}
		err := fmt.Errorf("gormlock: %s: %s is in another association of what is saved at once too: GORM saves it once, and would not store its %s: save it by itself, or use Association(%q).Append",
			one.where(), one.name(), at.key.DBName, one.relation.Name)
		journal.Doom(db, err)
		fault.Add(db, err)
		return
	}
}

// storedByTwin reports whether another struct of the same row was stored with the foreign key: see RefuseTwins.
func (g *graph) storedByTwin(at placeOfKey) bool {
	one := g.given[at]
	for other, twin := range g.given {
		if other.key == at.key && twin.stored && twin.value == one.value && twin.name() == one.name() {
			return true
		}
	}
	return false
}

// begunBy is the graph that this statement has begun, nil if there is none.
func begunBy(stmt *gorm.Statement) *graph {
	if stmt.Schema == nil || !statement.HasRelations(stmt.Schema) {
		return nil
	}
	if g := graphOf(stmt); g != nil && g.root == stmt {
		return g
	}
	return nil
}

// forgetGraph removes the graph, because the statement may be used again.
func forgetGraph(stmt *gorm.Statement) {
	if begunBy(stmt) != nil {
		stmt.Settings.Delete(graphSetting)
	}
}

// give notes the foreign key that the child gets from its parent. If another parent gives the child another key, that is an error.
func (g *graph) give(key *schema.Field, one given) error {
	at := placeOfKey{one.child.Addr().Pointer(), key}
	if before, is := g.given[at]; is && before.value != one.value {
		return fmt.Errorf("gormlock: %s: %s is in two structs, and a row has one parent: leave it in one of them", one.where(), one.name())
	}
	if g.given == nil {
		g.given = map[placeOfKey]given{}
	}
	if g.given[at] = one; !one.stored {
		g.moved = append(g.moved, at)
	}
	return nil
}

// GotKeys reports whether GORM gives children other parents in this save.
func GotKeys(stmt *gorm.Statement) bool {
	g := graphOf(stmt)
	return g != nil && len(g.moved) > 0
}

// NoteStored notes that a statement has stored these columns of a struct; nil: all columns.
func NoteStored(stmt *gorm.Statement, row reflect.Value, columns []string) {
	g := graphOf(stmt)
	if !row.CanAddr() {
		return
	}
	for _, field := range stmt.Schema.Fields {
		at := placeOfKey{row.Addr().Pointer(), field}
		if one, is := g.given[at]; is && (columns == nil || slices.Contains(columns, field.DBName)) {
			now := one.now(field)
			one.stored = one.stored || now == one.value || now != one.was
			g.given[at] = one
		}
	}
}

// SetByUpsert are the columns that an upsert sets in existing rows; nil: all columns.
func SetByUpsert(stmt *gorm.Statement) []string {
	c, ok := stmt.Clauses["ON CONFLICT"]
	if !ok {
		return nil
	}
	conflict, _ := c.Expression.(clause.OnConflict)
	if conflict.UpdateAll {
		return nil
	}
	columns := []string{}
	for _, a := range conflict.DoUpdates {
		columns = append(columns, a.Column.Name)
	}
	return columns
}

// now is the current foreign key of the child.
func (o given) now(key *schema.Field) string {
	value, _ := key.ValueOf(context.Background(), o.child)
	return keyText(value)
}

// keyText is a foreign key as a string. A pointer gives the same string as its value.
func keyText(value any) string {
	if v := reflect.ValueOf(value); v.Kind() == reflect.Pointer && !v.IsNil() {
		if _, is := value.(driver.Valuer); !is {
			value = v.Elem().Interface()
		}
	}
	return statement.KeyName([]any{value})
}

func (o given) where() string { return o.relation.Schema.Name + "." + o.relation.Name }

// name names the row of the child for people.
func (o given) name() string {
	s, values := o.relation.FieldSchema, map[string]any{}
	if nameIn(s, o.child) == "" {
		return "one new struct"
	}
	for _, field := range s.PrimaryFields {
		values[field.DBName], _ = field.ValueOf(context.Background(), o.child)
	}
	return fault.Row(s.Table, s.PrimaryFieldDBNames, values)
}
