package unlinked

import (
	"fmt"
	"reflect"
	"slices"
	"weak"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/statement"
)

// Association(…).Unscoped().Replace and Append of a belongs-to save the owners, and then delete the rows to which they belonged before. GORM does not
// ask whether an owner still belongs to one of these. It looks for them by their primary key, whatever column the owners refer to.

// noteSave remembers what the owners that such a call has saved belong to now.
func noteSave(db *gorm.DB) {
	stmt := db.Statement
	if db.DryRun || !slices.Contains(stmt.BuildClauses, "SET") || len(stmt.Selects) == 0 && !stmt.FullSaveAssociations {
		return
	}
	saves := &install.Of(db).Unlinked.Saves
	relations := savedBy(db)
	if len(relations) == 0 && !saves.Any() || !statement.InAssociation() {
		return
	}
	by, call := caller(), weak.Make(db.Config)
	saved := saves.Take(by)
	if len(relations) == 0 {
		return
	}
	if saved == nil || saved.Call != call {
		saved = &install.Save{Call: call, Relations: relations, Held: map[install.HeldRow]bool{}}
	}
	statement.EachStruct(stmt.ReflectValue, func(owner reflect.Value) {
		if owner.Type() != stmt.Schema.ModelType {
			return
		}
		for _, relation := range stmt.Schema.Relationships.BelongsTo {
			if isByKey(relation) {
				saved.Held[install.HeldRow{Table: relation.FieldSchema.Table, Key: statement.LinkOf(relation, owner)}] = true
			}
		}
	})
	saves.Note(by, saved)
}

func caller() install.Caller {
	return install.Caller{Goroutine: statement.Goroutine(), Hooks: statement.HookDepth()}
}

// savedBy are the belongs-to that a statement may save for such a call. GORM selects one first, unless it saves all.
func savedBy(db *gorm.DB) []*schema.Relationship {
	stmt := db.Statement
	all := stmt.Schema.Relationships.BelongsTo
	if len(stmt.Selects) > 0 {
		all = slices.DeleteFunc(slices.Clone(all), func(r *schema.Relationship) bool { return r.Name != stmt.Selects[0] })
	}
	return all
}

// isByKey reports whether a belongs-to refers to the primary key, in its order.
func isByKey(relation *schema.Relationship) bool {
	return slices.EqualFunc(ownersColumns(relation), relation.FieldSchema.PrimaryFields, func(ref *schema.Reference, key *schema.Field) bool {
		return ref.PrimaryKey.DBName == key.DBName
	})
}

// refuseReplaced refuses the delete of such a call if it would hit a row to which an owner belongs now, or to which none has belonged.
func refuseReplaced(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || db.DryRun || stmt.Schema == nil || install.Of(db) == nil || !install.Of(db).Unlinked.Saves.Any() {
		return
	}
	in := keyConditions(stmt)
	if len(in) == 0 || !slices.Contains(stmt.BuildClauses, "DELETE") || !slices.Equal(columnsOf(in[len(in)-1]), stmt.Schema.PrimaryFieldDBNames) || !statement.InReplace() {
		return
	}
	saved := install.Of(db).Unlinked.Saves.Take(caller())
	if saved == nil {
		return
	}
	const cure = "The foreign key of %s was stored, and stays so unless your transaction is rolled back: leave Unscoped out, and delete the old row by itself"
	for _, relation := range saved.Relations {
		if relation.FieldSchema.Table != stmt.Schema.Table || !isChecked(db, relation) {
			continue
		}
		if !isByKey(relation) {
			fault.Add(db, fmt.Errorf("gormlock: no row of %s was deleted: Association(%q).Unscoped() deletes by the primary key, and %s does not refer to that, so another row would be deleted. "+cure,
				stmt.Schema.Table, relation.Name, relation.Schema.Name, relation.Schema.Name))
			return
		}
		for _, key := range keysIn(in[len(in)-1]) {
			if saved.Held[install.HeldRow{Table: stmt.Schema.Table, Key: statement.KeyName(key)}] {
				fault.Add(db, fmt.Errorf("gormlock: no row of %s was deleted: Association(%q).Unscoped() deletes each row to which a %s belonged before, and one belongs to such a row now. "+cure,
					stmt.Schema.Table, relation.Name, relation.Schema.Name, relation.Schema.Name))
				return
			}
		}
	}
}

// RefuseMap refuses to create the row of a map for Association(…).Replace of a has-many. GORM does not put that row into the struct, so it would unlink
// or delete the row together with the old ones.
func RefuseMap(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || db.DryRun || stmt.Schema == nil || install.Of(db) == nil || !statement.FromMap(stmt.Dest) || !statement.InUnlinking() || !statement.InAppend() {
		return
	}
	row := statement.MapsIn(stmt.Dest)[0]
	statement.EachParsed(db, func(s *schema.Schema) bool {
		for _, relation := range s.Relationships.HasMany {
			if relation.FieldSchema.Table == stmt.Schema.Table && has(row, relation.References) && isChecked(db, relation) {
				fault.Add(db, fmt.Errorf("gormlock: %s: nothing was executed: Association(%q).Replace would unlink or delete the row that it makes of a map, with the old ones: "+
					"give it a struct", stmt.Schema.Table, relation.Name))
				return false
			}
		}
		return true
	})
}
