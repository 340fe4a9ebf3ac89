package mark

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/statement"
)

// running is a note among the clauses of a statement: the marks are heeded, and the statement has not ended. Clones of the
// statement have it too, so it names its statement.
type running struct{ stmt *gorm.Statement }

// Running is the name of the note running among the clauses.
const Running = "gormlock:running"

func (running) Build(clause.Builder) {}

// Forget removes the note when the statement has ended.
func Forget(db *gorm.DB) { delete(db.Statement.Clauses, Running) }

// usedMeanwhile reports whether a hook or a plugin uses the conditions of a running statement in another one.
func usedMeanwhile(stmt *gorm.Statement) bool {
	if stmt.Clauses[Running].Expression != clause.Expression(running{stmt}) {
		return false
	}
	return statement.InConditions()
}

// markAgain is a scope that puts the marks back for the clauses that the statement still carries.
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
