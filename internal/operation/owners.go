package operation

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/statement"
)

// operation is an operation that a statement may be about.
type operation struct {
	relation   *schema.Relationship
	conditions []clause.Expression // what the statement has besides the condition of the owners
}

// of are the operations that a statement may be about, by the form of its conditions and by the function of GORM's that has made it. All have the same
// owners.
func of(db *gorm.DB) (all []operation, alone bool) {
	stmt := db.Statement
	if db.Error != nil || stmt.DryRun || slices.Contains(stmt.BuildClauses, "VALUES") {
		return nil, false
	}
	_, given := statement.Conditions(stmt)
	for _, relation := range relationsOf(db, given) {
		all = append(all, operation{relation: relation, conditions: given[:len(given)-1]})
	}
	if len(all) == 0 {
		for _, relation := range unlinkedBy(stmt) {
			all = append(all, operation{relation: relation, conditions: given})
		}
	}
	if len(all) == 0 {
		return nil, false
	}
	is, alone := statement.InOperation()
	if !is {
		return nil, false
	}
	return all, alone
}

// relationsOf are the relations whose rows the conditions find by a sub-query of the owners, or of the links. It is the last of them.
func relationsOf(db *gorm.DB, given []clause.Expression) (all []*schema.Relationship) {
	if len(given) == 0 {
		return nil
	}
	expr, _ := given[len(given)-1].(clause.Expr)
	if len(expr.Vars) == 0 {
		return nil
	}
	sub, is := expr.Vars[len(expr.Vars)-1].(*gorm.DB)
	switch {
	case !is || sub == nil || sub.Statement == nil:
	case expr.SQL == "? IN (?)" && len(expr.Vars) == 2 && sub.Statement.Schema != nil && db.Statement.Schema != nil:
		columns, _ := expr.Vars[0].([]any)
		return byKeys(db.Statement, sub.Statement, columns)
	case expr.SQL == "EXISTS (?)" && slices.Equal(sub.Statement.Selects, []string{"1"}):
		return byLinks(db, sub.Statement.Table)
	}
	return nil
}

// byKeys are the relations of the owners of a sub-query that it finds by these columns.
func byKeys(stmt, owners *gorm.Statement, columns []any) (all []*schema.Relationship) {
	for _, relation := range statement.OwnRelations(owners.Schema) {
		if relation.FieldSchema.Table != stmt.Schema.Table || relation.JoinTable != nil {
			continue
		}
		var own, other []string
		for _, ref := range relation.References {
			switch {
			case ref.PrimaryValue != "":
			case ref.OwnPrimaryKey:
				own, other = append(own, ref.PrimaryKey.DBName), append(other, ref.ForeignKey.DBName)
			default:
				own, other = append(own, ref.ForeignKey.DBName), append(other, ref.PrimaryKey.DBName)
			}
		}
		if slices.Equal(own, owners.Selects) && slices.EqualFunc(columns, other, func(column any, name string) bool { return column == clause.Column{Name: name} }) {
			all = append(all, relation)
		}
	}
	return all
}

// byLinks are the many2many relations of which a statement about a table finds the links, or the linked rows, by a sub-query of another table: that of
// the owners or of the linked rows, or that of the links.
func byLinks(db *gorm.DB, sub string) (all []*schema.Relationship) {
	table := db.Statement.Table
	if db.Statement.Schema != nil {
		table = statement.NameInStatement(db.Statement.Schema.Table)
	}
	statement.EachParsed(db, func(s *schema.Schema) bool {
		for _, relation := range s.Relationships.Many2Many {
			owners, links, linked := statement.NameInStatement(s.Table), statement.NameInStatement(relation.JoinTable.Table), statement.NameInStatement(relation.FieldSchema.Table)
			if table == links && (sub == owners || sub == linked) || table == linked && sub == links {
				all = append(all, relation)
			}
		}
		return true
	})
	return all
}

// unlinkedBy are the belongs-to relations whose foreign keys an update sets to NULL, and nothing else.
func unlinkedBy(stmt *gorm.Statement) (all []*schema.Relationship) {
	columns, _ := stmt.Dest.(map[string]any)
	if stmt.Schema == nil || len(columns) == 0 || !slices.Contains(stmt.BuildClauses, "SET") {
		return nil
	}
	for _, value := range columns {
		if value != nil {
			return nil
		}
	}
	for _, relation := range stmt.Schema.Relationships.BelongsTo {
		if len(relation.References) == len(columns) && !slices.ContainsFunc(relation.References, func(ref *schema.Reference) bool { _, is := columns[ref.ForeignKey.DBName]; return !is }) {
			all = append(all, relation)
		}
	}
	return all
}

// Owners is the model of the owners whose children a statement of gorm.G finds by a sub-query, or nil.
func Owners(db *gorm.DB) *schema.Schema {
	all, _ := of(db)
	for _, one := range all {
		if one.relation.Type != schema.BelongsTo {
			return one.relation.Schema
		}
	}
	return nil
}

// isOfAnother reports whether a struct has the foreign key of another owner than this one.
func isOfAnother(relation *schema.Relationship, owner, child reflect.Value) bool {
	var key []any
	for _, ref := range relation.References {
		if !ref.OwnPrimaryKey {
			continue
		}
		part := reflect.Indirect(statement.Place(ref.ForeignKey, child))
		if !part.IsValid() || part.IsZero() {
			return false
		}
		key = append(key, part.Interface())
	}
	return len(key) > 0 && statement.KeyName(key) != statement.LinkOf(relation, owner)
}
