package operation

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// Refuse refuses a statement of such an operation if it could reach rows that the caller did not mean.
func Refuse(db *gorm.DB) {
	if db.Error != nil || db.DryRun || install.Of(db) == nil {
		return
	}
	all, alone := of(db)
	for _, one := range all {
		if err := one.refusal(db, alone); err != nil && isGuarded(db, one.relation) {
			fault.Add(db, err)
			return
		}
	}
	if len(all) == 0 {
		refuseCreate(db)
	}
}

func (o operation) refusal(db *gorm.DB, alone bool) error {
	r := o.relation
	if statement.InOperationOfCreate() {
		return errOfCreate(r)
	}
	deletes := slices.Contains(db.Statement.BuildClauses, "DELETE")
	owners := slices.Contains(unlinkedBy(db.Statement), r)
	switch {
	case r.Type == schema.Many2Many:
		return fmt.Errorf("gormlock: nothing was executed: gorm.G leaves its Where out of an operation on %s.%s, so the rows of all owners would change: "+
			"use Association(%q), or write the rows by a statement with conditions of its own", r.Schema.Name, r.Name, r.Name)
	case r.Type == schema.BelongsTo && owners && alone:
		return fmt.Errorf("gormlock: nothing was executed: gorm.G leaves the Conditions out of an OpUnlink of %s.%s: use Update(ctx, %q, nil), with all conditions in Where",
			r.Schema.Name, r.Name, columnsOf(r))
	case r.Type == schema.BelongsTo && deletes && len(o.conditions) > 0:
		return fmt.Errorf("gormlock: nothing was executed: gorm.G deletes the rows of %s that the Conditions find, and takes %s.%s from all owners: "+
			"use Update(ctx, %q, nil) with all conditions in Where, and delete the rows by a statement of their own", r.FieldSchema.Table, r.Schema.Name, r.Name, columnsOf(r))
	case r.Type != schema.BelongsTo:
		return o.refuseOtherTypes()
	}
	return nil
}

func columnsOf(r *schema.Relationship) string {
	var names []string
	for _, ref := range r.References {
		names = append(names, ref.ForeignKey.DBName)
	}
	return strings.Join(names, ", ")
}

// refuseOtherTypes is the error of an operation on a polymorphic association whose Conditions do not name the type.
func (o operation) refuseOtherTypes() error {
	for _, ref := range o.relation.References {
		if ref.PrimaryValue == "" || slices.ContainsFunc(o.conditions, func(c clause.Expression) bool { return isEqual(c, ref) }) {
			continue
		}
		return fmt.Errorf("gormlock: nothing was executed: gorm.G leaves the type of %s.%s out, so rows that belong to other models would change too: "+
			"put clause.Eq{Column: %q, Value: %q} into the Conditions, or use Association(%q)", o.relation.Schema.Name, o.relation.Name, ref.ForeignKey.DBName, ref.PrimaryValue, o.relation.Name)
	}
	return nil
}

// isEqual reports whether a condition demands the type of a polymorphic association.
func isEqual(condition clause.Expression, ref *schema.Reference) bool {
	eq, _ := condition.(clause.Eq)
	name, _ := eq.Column.(string)
	if column, is := eq.Column.(clause.Column); is {
		name = column.Name
	}
	value := reflect.Indirect(reflect.ValueOf(eq.Value))
	return name == ref.ForeignKey.DBName && value.Kind() == reflect.String && value.String() == ref.PrimaryValue
}

// refuseCreate refuses an OpCreate that would give a row of one owner to the next, and one of Set(…).Create.
func refuseCreate(db *gorm.DB) {
	stmt := db.Statement
	creates := slices.Contains(stmt.BuildClauses, "VALUES")
	switch {
	case stmt.Schema == nil:
	case creates && len(statement.MapsIn(stmt.Dest)) == 1 && statement.InAppend() && statement.InOperationOfCreate():
		statement.EachParsed(db, func(s *schema.Schema) bool {
			for _, r := range slices.Concat(s.Relationships.HasMany, s.Relationships.Many2Many) {
				if db.Error == nil && r.FieldSchema.Table == stmt.Schema.Table && isGuarded(db, r) {
					fault.Add(db, errOfCreate(r))
				}
			}
			return db.Error == nil
		})
	case slices.Contains(stmt.BuildClauses, "SET") && len(stmt.Selects) > 0 && stmt.ReflectValue.Kind() == reflect.Struct:
		for _, r := range statement.OwnRelations(stmt.Schema) {
			if slices.Contains(stmt.Selects, r.Name) && isGuarded(db, r) && statement.InAssociation() && statement.InOperationForOwners() {
				refuseForOwner(db, r)
				return
			}
		}
	}
}

// refuseForOwner refuses the update by which GORM saves a relation of one owner.
func refuseForOwner(db *gorm.DB, r *schema.Relationship) {
	if statement.InOperationOfCreate() {
		fault.Add(db, errOfCreate(r))
		return
	}
	owner := db.Statement.ReflectValue
	place := statement.Place(r.Field, owner)
	if r.Type != schema.HasOne && r.Type != schema.HasMany || !place.IsValid() {
		return
	}
	statement.EachStruct(place, func(child reflect.Value) {
		if db.Error == nil && child.Type() == r.FieldSchema.ModelType && isOfAnother(r, owner, child) {
			fault.Add(db, fmt.Errorf("gormlock: gorm.G would take a struct from another %s, because a row of %s.%s cannot belong to several. What it has given to owners before "+
				"stays with them unless your transaction is rolled back: use Set instead of Values, or Association(%q).Append to move the row", r.Schema.Name, r.Schema.Name, r.Name, r.Name))
		}
	})
}

func errOfCreate(r *schema.Relationship) error {
	return fmt.Errorf("gormlock: nothing was executed: Set(…).Create of gorm.G would do this to %s.%s of all rows that exist, and not of the new one: "+
		"Create a struct that holds its association, or use Association(%q).Append", r.Schema.Name, r.Name, r.Name)
}

// isGuarded reports whether a model of the relation has a version, a fence or a root.
func isGuarded(db *gorm.DB, r *schema.Relationship) bool {
	for _, s := range []*schema.Schema{r.Schema, r.FieldSchema, r.JoinTable} {
		if s == nil {
			continue
		}
		if m := model.OfSchema(db, s); m.Column != nil || m.Fence != nil || len(m.Roots) > 0 {
			return true
		}
	}
	return false
}
