package guard

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// Rows reads these columns of rows of the statement's table, and the version, on the statement's connection.
func Rows(db *gorm.DB, m *model.Model, names []string, unscoped, lock bool, conditions ...clause.Expression) ([]reflect.Value, error) {
	if version := m.Column; version != nil && !version.IsSystem() {
		names = append(names, version.Field.DBName)
	}
	rows := reflect.New(reflect.SliceOf(m.Schema.ModelType))
	query := db.Session(&gorm.Session{NewDB: true, SkipHooks: true}).Model(rows.Interface()).Select(names)
	statement.SameTable(query.Statement, db.Statement)
	query.Statement.Unscoped = unscoped
	if len(conditions) > 0 {
		query = query.Clauses(clause.Where{Exprs: conditions})
	}
	switch speaks := dialect.Of(db); {
	case lock && speaks.LocksRows():
		query = query.Clauses(clause.Locking{Strength: speaks.Strength("NO KEY UPDATE")})
	case speaks.IsMySQL(): // a snapshot would show rows as they were before
		query = query.Clauses(clause.Locking{Strength: clause.LockingStrengthShare})
	}
	if err := query.Find(rows.Interface()).Error; err != nil {
		return nil, err
	}
	found := make([]reflect.Value, rows.Elem().Len())
	for i := range found {
		found[i] = rows.Elem().Index(i)
	}
	return found, nil
}

// Leaves reports whether a statement about many rows, which writes those at the version that its caller names, leaves this one as it is. The row
// was read by Rows.
func Leaves(stmt *gorm.Statement, row reflect.Value) bool {
	w := writeOf(stmt)
	if w == nil || !w.version.given || !w.version.checked || !w.version.IsInteger() || w.version.IsSystem() || !w.isBulk() {
		return false
	}
	is := w.version.Read(row)
	return !is.Null && !w.version.accepts(&w.single[0], is)
}
