package statement

import (
	"slices"
	"strings"

	"gorm.io/gorm"
)

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

// InsertAs gives the insert that follows an update which found no row what the caller gave the update: settings, which callbacks of others
// read, and clauses. What GORM and gormlock have put there for the update stays behind.
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

// ofUpdates are the clauses that say nothing of an insert, or another thing.
var ofUpdates = []string{"UPDATE", "SET", "FROM", "WHERE", "FOR", "VALUES", "ON CONFLICT"}
