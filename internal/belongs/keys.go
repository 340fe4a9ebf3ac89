package belongs

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/children"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// keys are the primary keys of structs, and their foreign keys, before GORM gives them those of what they belong to.
type keys []keyed

type keyed struct {
	row   reflect.Value
	had   children.Rekeyed // its key
	kept  []kept
	names []foreign // what it names by a foreign key only
}

const keysClause = "gormlock:belongs_keys"

// Build writes nothing. It makes keys a clause, so that the statement can carry it.
func (keys) Build(clause.Builder) {}

// keepKeys keeps the keys of the structs that a statement may write into existing rows, if a foreign key is a part of them. It also keeps foreign
// keys that have a column in common.
func keepKeys(db *gorm.DB) {
	stmt, m := db.Statement, model.Of(db)
	if db.Error != nil || db.DryRun || m == nil || m.Err != nil || m.Column == nil && m.Fence == nil && len(m.Roots) == 0 {
		return
	}
	if len(m.Crossed) == 0 && !mayRekey(stmt, m) {
		return
	}
	var all keys
	statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) {
		if row.Type() != m.Schema.ModelType || !row.CanSet() || !holdsOwner(m, row) {
			return
		}
		one := keyed{row: row, had: children.KeyOf(m, row, keyOf(m.Schema, row))}
		for _, relation := range m.Schema.Relationships.BelongsTo {
			for _, ref := range relation.References {
				if place := statement.Place(ref.ForeignKey, row); place.IsValid() {
					one.kept = append(one.kept, keep(place))
				}
			}
		}
		one.names = namesOf(m, row)
		all = append(all, one)
	})
	if all != nil {
		stmt.Clauses[keysClause] = clause.Clause{Expression: all}
	}
}

// mayRekey reports whether GORM may give a struct of an existing row another key.
func mayRekey(stmt *gorm.Statement, m *model.Model) bool {
	creates := slices.Contains(stmt.BuildClauses, "VALUES")
	return m.KeyLinked && (!creates || statement.HasUpsert(stmt) || statement.InSave()) // GORM's Save creates if a part of the key is zero
}

// keyOf is the primary key of a struct. A pointer gives its value, because GORM writes through it.
func keyOf(s *schema.Schema, row reflect.Value) []any {
	key := make([]any, len(s.PrimaryFields))
	for i, field := range s.PrimaryFields {
		if part := reflect.Indirect(statement.Place(field, row)); part.IsValid() {
			key[i] = part.Interface()
		}
	}
	return key
}

// refuseOtherKeys refuses the statement if a struct has got another key, or if one of its associations took another one along. It puts all keys
// back then.
func refuseOtherKeys(db *gorm.DB) {
	all, _ := db.Statement.Clauses[keysClause].Expression.(keys)
	delete(db.Statement.Clauses, keysClause)
	if all == nil {
		return
	}
	m := model.Of(db)
	if db.Error == nil && mayRekey(db.Statement, m) {
		for _, one := range all {
			if err := guard.Rekeyed(db.Statement, m, one.had, keyOf(m.Schema, one.row)); err != nil {
				fault.Add(db, err)
			}
		}
	}
	if db.Error == nil && len(m.Crossed) > 0 {
		refuseTakenAlong(db, m, all)
	}
	if db.Error != nil {
		for _, one := range all {
			for _, k := range one.kept {
				k.putBack()
			}
		}
	}
}
