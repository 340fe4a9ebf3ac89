package guard

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// referrers are the structs of a statement that saves associations, and those of the statements above it. The statement of an association does not
// show who refers to its structs, and by which columns.
type referrers struct {
	schema *schema.Schema
	rows   reflect.Value
	above  *referrers
}

const referrersSetting = "gormlock:referrers" // GORM passes settings on to the statements of associations

// NoticeReferrers remembers the structs of a statement for the statements of its associations.
func NoticeReferrers(db *gorm.DB) {
	m := model.Of(db)
	if db.Error != nil || db.DryRun || m == nil || !m.ByOthers {
		return
	}
	stmt := db.Statement
	stmt.Settings.Store(referrersSetting, &referrers{schema: stmt.Schema, rows: stmt.ReflectValue, above: referrersOf(stmt)})
}

func referrersOf(stmt *gorm.Statement) *referrers {
	value, _ := stmt.Settings.Load(referrersSetting)
	r, _ := value.(*referrers)
	return r
}

// referTo returns the relations that refer to a struct by columns other than its key: then the row need not be the one with its key. It returns
// none if one of them refers to the key.
func (r *referrers) referTo(s *schema.Schema, row reflect.Value) (by []*schema.Relationship) {
	byKey := false
	for ; r != nil && row.CanAddr(); r = r.above {
		for _, relation := range statement.OwnRelations(r.schema) {
			refers := relation.Type == schema.BelongsTo || relation.Type == schema.Many2Many
			if !refers || relation.FieldSchema != s || !r.hold(relation, row) {
				continue
			}
			by, byKey = append(by, relation), byKey || model.IsByKey(relation)
		}
	}
	if byKey {
		return nil
	}
	return by
}

// hold reports whether a struct is in the field of the relation.
func (r *referrers) hold(relation *schema.Relationship, row reflect.Value) (is bool) {
	statement.EachStruct(r.rows, func(owner reflect.Value) {
		if is || owner.Type() != r.schema.ModelType {
			return
		}
		if place := statement.Place(relation.Field, owner); place.IsValid() {
			statement.EachStruct(place, func(held reflect.Value) {
				is = is || held.CanAddr() && held.Addr().Pointer() == row.Addr().Pointer()
			})
		}
	})
	return is
}

// isNamedByOthers reports whether others refer to one of the structs by columns other than its key.
func (p *plan) isNamedByOthers(stmt *gorm.Statement) bool {
	r, is := referrersOf(stmt), false
	if r == nil {
		return false
	}
	statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) {
		is = is || row.Type() == p.model.Schema.ModelType && len(r.referTo(p.model.Schema, row)) > 0
	})
	return is
}

// whyUnreferred returns the error of a struct that was not stored, if no row has the values to which others refer.
func (a *answer) whyUnreferred(db *gorm.DB, i int, by []*schema.Relationship) error {
	row := a.rows[i].Struct
	for _, relation := range by {
		where, columns := []clause.Expression{}, a.columnsToLookAt()
		for _, field := range model.Referred(relation) {
			place := statement.Place(field, row)
			if !place.IsValid() || place.Kind() == reflect.Pointer && place.IsNil() {
				where = nil // NULL refers to nothing
				break
			}
			value, _ := field.ValueOf(db.Statement.Context, row)
			where = append(where, clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: field.DBName}, Value: value})
		}
		if len(where) > 0 {
			found, err := a.lookWhere(db, columns, func(q *gorm.DB) *gorm.DB { return q.Unscoped().Clauses(clause.Where{Exprs: where}) })
			if err != nil {
				return err
			}
			if len(found) > 0 {
				continue
			}
		}
		return fmt.Errorf("gormlock: %s: element %d of %d was not stored, because a row with another unique value of it is there, so %s.%s would refer to nothing: "+
			"read that row, and put it in its place", statement.TableName(db.Statement), i, len(a.rows), relation.Schema.Name, relation.Name)
	}
	return nil
}
