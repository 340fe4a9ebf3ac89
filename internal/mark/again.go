package mark

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/statement"
)

// running notes, among the clauses of a statement, that its marks are heeded and it has not ended. Clones have it too: it
// says whose it is.
type running struct{ stmt *gorm.Statement }

// Running is the name of that note among the clauses.
const Running = "gormlock:running"

func (running) Build(clause.Builder) {}

// Forget says that the statement has ended.
func Forget(db *gorm.DB) { delete(db.Statement.Clauses, Running) }

// usedMeanwhile reports whether a hook, or a plugin, asks something with the conditions of the statement that runs.
func usedMeanwhile(stmt *gorm.Statement) bool {
	if stmt.Clauses[Running].Expression != clause.Expression(running{stmt}) {
		return false
	}
	return statement.InConditions()
}

// markAgain is a scope that marks what the statement carries.
func markAgain(db *gorm.DB) *gorm.DB {
	if usedMeanwhile(db.Statement) {
		statement.AddScope(db.Statement, markAgain)
		return db
	}
	for _, of := range kinds {
		if m := of(db.Statement); m != nil {
			Put(db.Statement, m)
		}
	}
	return db
}
