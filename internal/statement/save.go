package statement

import "gorm.io/gorm"

// SaveByKey does for a statement that creates what Save does of a struct with a key.
func SaveByKey(db *gorm.DB) *gorm.DB {
	update := db.Session(&gorm.Session{Initialized: true})
	update.Statement.BuildClauses = nil // those of the create
	if len(update.Statement.Selects) == 0 {
		update.Statement.Selects = []string{"*"}
	}
	update = update.Callback().Update().Execute(update)
	if update.DryRun {
		_, _ = db.Statement.WriteString(update.Statement.SQL.String())
		db.Statement.Vars = update.Statement.Vars
	}
	return update
}
