package statement

import (
	"slices"
	"strings"

	"gorm.io/gorm"
)

// SaveByKey runs, for a create, the update that Save runs for a struct with a key.
func SaveByKey(db *gorm.DB) *gorm.DB {
	update := db.Session(&gorm.Session{Initialized: true})
	update.Statement.BuildClauses = nil // they are the create's
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

// InsertAs is for the insert that follows an update without a row. It copies to the insert what the caller gave the update: settings, which other
// plugins' callbacks read, and clauses. It does not copy what GORM and gormlock have added for the update.
func InsertAs(insert, update *gorm.Statement) {
	insert.Unscoped = update.Unscoped
	update.Settings.Range(func(key, value any) bool {
		if name, _ := key.(string); name != savedAssociations && !strings.HasPrefix(name, "gormlock") {
			insert.Settings.Store(key, value)
		}
		return true
	})
	for name, c := range update.Clauses {
		if !slices.Contains(ofUpdates, name) && !strings.HasPrefix(name, "gormlock") {
			insert.Clauses[name] = c
		}
	}
}

// ofUpdates are clauses that have no meaning for an insert, or another one.
var ofUpdates = []string{"UPDATE", "SET", "FROM", "WHERE", "FOR", "VALUES", "ON CONFLICT"}
