package reading

import (
	"reflect"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// apart keeps a query from writing versions into structs other than the one that it reads into. The elements of slices are always new.
func apart(db *gorm.DB, m *model.Model) {
	if m == nil || m.Column == nil || db.DryRun || !statement.ThroughPointer(m.Column.Field) {
		return
	}
	if statement.Reloads(db.Statement) {
		return // into a struct that was prepared for it
	}
	row := reflect.ValueOf(db.Statement.Dest)
	for row.Kind() == reflect.Pointer {
		row = row.Elem()
	}
	if row.IsValid() && row.Type() == m.Schema.ModelType {
		statement.OwnPath(m.Column.Field, row)
	}
}
