package belongs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/unlinked"
)

// refuseUnlinked refuses an update of Association(…).Delete, Replace or Clear that would take another association away too, because it sets a column
// to NULL that both foreign keys have.
func refuseUnlinked(db *gorm.DB) {
	stmt, m := db.Statement, model.Of(db)
	if db.Error != nil || db.DryRun || m == nil || m.Err != nil || m.Column == nil && m.Fence == nil && len(m.Roots) == 0 || len(m.Schema.Relationships.BelongsTo) == 0 {
		return
	}
	columns, _ := stmt.Dest.(map[string]any)
	if !slices.Contains(stmt.BuildClauses, "SET") || !unlinked.IsUnlinking(stmt) {
		return
	}
	others := takenBeside(m, columns)
	if len(others) == 0 || !statement.InClear(stmt) && !statement.InAssociationDelete() {
		return
	}
	for _, relation := range others {
		if err := refuseToTake(db, m, relation, columns); err != nil {
			fault.Add(db, err)
			return
		}
	}
}

// takenBeside are the relations that lose a part of their foreign key, but not by themselves.
func takenBeside(m *model.Model, columns map[string]any) (others []*schema.Relationship) {
	own := false // a belongs-to has just these columns
	for _, relation := range m.Schema.Relationships.BelongsTo {
		own = own || inColumns(relation, columns) == len(columns) && len(relation.References) == len(columns)
	}
	for _, relation := range m.Schema.Relationships.BelongsTo {
		n := inColumns(relation, columns)
		if n > 0 && n < max(len(columns), len(relation.References)) && (own || n < len(columns)) {
			others = append(others, relation)
		}
	}
	return others
}

// inColumns is how many columns of the foreign key these are.
func inColumns(relation *schema.Relationship, columns map[string]any) (n int) {
	for column := range columns {
		if model.HasColumn(relation, column) {
			n++
		}
	}
	return n
}

// refuseToTake returns an error if a row of the statement has something by the relation.
func refuseToTake(db *gorm.DB, m *model.Model, relation *schema.Relationship, columns map[string]any) error {
	stmt := db.Statement
	where, _ := stmt.Clauses["WHERE"].Expression.(clause.Where)
	conditions := slices.Clone(where.Exprs)
	var keys [][]any
	statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) {
		if row.Type() != m.Schema.ModelType {
			return
		}
		if key, _ := statement.KeyOf(stmt, m.Schema, row); key != nil {
			keys = append(keys, key)
		}
	})
	if len(keys) > 0 {
		conditions = append(conditions, guard.KeyIn(m.Schema, keys))
	}
	if len(conditions) == 0 {
		return nil // it is refused as an update without a condition
	}
	names := slices.Clone(m.Schema.PrimaryFieldDBNames)
	var both []string
	for _, ref := range relation.References {
		column := ref.ForeignKey.DBName
		if conditions = append(conditions, clause.Neq{Column: clause.Column{Table: clause.CurrentTable, Name: column}}); !slices.Contains(names, column) {
			names = append(names, column)
		}
		if _, is := columns[column]; is {
			both = append(both, column)
		}
	}
	rows, err := guard.Rows(db, m, names, stmt.Unscoped, true, conditions...)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if !hasOwnPart(relation, row, columns) {
			continue
		}
		key := map[string]any{}
		for _, field := range m.Schema.PrimaryFields {
			key[field.DBName], _ = field.ValueOf(stmt.Context, row)
		}
		return fmt.Errorf("gormlock: %s: Association(…) would set %s to NULL, which is a part of the foreign key of %s.%s too, so the row would lose that: %s",
			fault.Row(m.Schema.Table, m.Schema.PrimaryFieldDBNames, key), strings.Join(both, ", "), m.Schema.Name, relation.Name, instead(relation, columns))
	}
	return nil
}

// instead says how to take one association away without the other.
func instead(relation *schema.Relationship, columns map[string]any) string {
	var own []string
	for column := range columns {
		if !model.HasColumn(relation, column) {
			own = append(own, column)
		}
	}
	if len(own) == 0 {
		return "take that away first"
	}
	slices.Sort(own)
	return fmt.Sprintf("set only %s to NULL, by Model(…).Updates with a map", strings.Join(own, ", "))
}

// hasOwnPart reports whether the foreign key of a row has a part beside these columns that is not zero, as it is if the row has nothing by that
// relation. It has all of them if there is no other part.
func hasOwnPart(relation *schema.Relationship, row reflect.Value, columns map[string]any) bool {
	others := 0
	for _, ref := range relation.References {
		if _, is := columns[ref.ForeignKey.DBName]; is {
			continue
		}
		others++
		if place := reflect.Indirect(statement.Place(ref.ForeignKey, row)); place.IsValid() && !place.IsZero() {
			return true
		}
	}
	return others == 0
}
