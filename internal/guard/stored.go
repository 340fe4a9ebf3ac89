package guard

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/children"
	"github.com/gormlock/gormlock/internal/statement"
)

// noteStored notes which foreign keys, set by GORM in the structs, are stored with them.
func (w *Write) noteStored(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || db.DryRun || w.op == OpUpdate && !statement.HasRelations(stmt.Schema) || !children.GotKeys(stmt) {
		return
	}
	var set []string
	if w.op != OpUpdate {
		set = children.SetByUpsert(stmt)
	} else {
		for _, a := range statement.Assignments(stmt) {
			set = append(set, a.Column.Name)
		}
	}
	for i := range w.memory.Count {
		columns := set
		if w.op != OpUpdate && w.wasNew(stmt, i) {
			columns = nil // it was inserted
		}
		children.NoteStored(stmt, w.memory.Row(i), columns)
	}
}

// wasNew reports whether the struct seems to have had no row before the create.
func (w *Write) wasNew(stmt *gorm.Statement, i int) bool {
	was := w.memory.Was(i)
	if !was.IsValid() {
		return true
	}
	key, _ := statement.KeyOf(stmt, w.model.Schema, was)
	return key == nil || w.version.is() && w.version.Unset(w.version.Read(was)) && !w.version.ZeroIsLoaded()
}
