package guard

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/match"
)

// keys are the keys of the rows, each at the place of its struct.
func (s *subjects) keys() [][]any {
	keys := make([][]any, len(s.rows))
	for i := range s.rows {
		keys[i] = s.rows[i].Key
	}
	return keys
}

// matched returns the rows that were returned, each at the place of its struct. The value is invalid if no row was returned for a struct.
func (a *answer) matched(db *gorm.DB) ([]reflect.Value, error) {
	return match.ByKey(db, a.model.Schema, a.keys(), a.returning.all())
}

// rowsOfUpsert does the same for an upsert. If every struct was written, the rows have the order of the structs.
func (a *answer) rowsOfUpsert(db *gorm.DB) ([]reflect.Value, error) {
	rows := a.returning.all()
	if len(rows) == len(a.rows) && !a.returning.back {
		return rows, nil
	}
	structs := make([]reflect.Value, len(a.rows))
	for i := range a.rows {
		structs[i] = a.rows[i].Struct
	}
	conflict, _ := db.Statement.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	u := match.Upsert{
		Schema: a.model.Schema, Structs: structs, Keys: a.keys(), Skips: a.upsert.skips, ByKey: !a.upsert.skips && a.isOnKey(conflict), Behind: a.returning.back,
		Inserted: a.inserted(db.Statement), Returned: a.sentAndReturned(db.Statement), Kept: a.sentAndKept(db.Statement),
	}
	return u.Rows(db, rows)
}

// inserted are the columns that were sent, except those of the guards.
func (a *answer) inserted(stmt *gorm.Statement) (fields []*schema.Field) {
	values, _ := stmt.Clauses["VALUES"].Expression.(clause.Values)
	for _, c := range values.Columns {
		if field := a.model.Schema.LookUpField(c.Name); field != nil && field != a.version.Field && (a.fence == nil || field != a.fence.Field) {
			fields = append(fields, field)
		}
	}
	return fields
}

// sentAndReturned are the sent columns that were returned too, except the key.
func (a *answer) sentAndReturned(stmt *gorm.Statement) []*schema.Field {
	return slices.DeleteFunc(a.inserted(stmt), func(field *schema.Field) bool {
		return field.PrimaryKey || !slices.Contains(a.returning.fields, field)
	})
}

// sentAndKept are the columns in which a returned row holds what its struct sent. These are the inserted columns. If the statement may have updated
// the row, they are only the columns of the conflict and those that the update took over.
func (a *answer) sentAndKept(stmt *gorm.Statement) []*schema.Field {
	conflict, _ := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	found := a.conflictFields(stmt)
	return slices.DeleteFunc(a.sentAndReturned(stmt), func(field *schema.Field) bool {
		takenOver := slices.ContainsFunc(conflict.DoUpdates, func(set clause.Assignment) bool {
			name, is := dialect.Excluded(set.Value)
			return is && name == field.DBName && set.Column.Name == name
		})
		return !a.upsert.skips && !takenOver && !slices.Contains(found, field)
	})
}
