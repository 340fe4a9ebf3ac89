package reading

import (
	"reflect"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// apart lets a query write into no struct but the one it reads into, as far as versions go. The elements of slices are
// always new.
func apart(db *gorm.DB, m *model.Model) {
	if m == nil || m.Column == nil || db.DryRun || !statement.ThroughPointer(m.Column.Field) {
		return
	}
	if statement.Reloads(db.Statement) {
		return // into a struct that was made ready for it
	}
	row := reflect.ValueOf(db.Statement.Dest)
	for row.Kind() == reflect.Pointer {
		row = row.Elem()
	}
	if row.IsValid() && row.Type() == m.Schema.ModelType {
		statement.OwnPath(m.Column.Field, row)
	}
}
