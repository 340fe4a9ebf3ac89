package mark

import (
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// ask is a clause of gormlock.
type ask interface {
	clause.Expression
	gorm.StatementModifier
}

// Give gives a clause to a db, as a scope does. When GORM takes the conditions of a session, it runs the session's scopes and drops what they
// return. In that case Give changes the session itself.
func Give(db *gorm.DB, c ask) *gorm.DB {
	if statement.IsSession(db) && statement.InGroup() {
		if c.ModifyStatement(db.Statement); db.Statement.Error != nil {
			db.Error = db.Statement.Error
		}
		return db
	}
	return db.Clauses(c)
}

// Fail fails a statement that was given an invalid clause, and every other statement that takes its conditions.
func Fail(stmt *gorm.Statement, err error) {
	fault.AddGiven(stmt, err)
	Put(stmt, failed{err})
}

// failed is the mark of an invalid clause.
type failed struct{ err error }

func (f failed) Build(builder clause.Builder) { Refuse(builder, f) }

func (failed) Heeded(*gorm.Statement) bool { return false }

func (failed) Covered(*gorm.Statement) bool { return false }

func (failed) Matters(bool) bool { return true }

func (f failed) Late() error { return f.err }

func (f failed) Refusal() error { return f.err }

// refuseInPreloads fails a query if a db among the conditions of a Preload has a clause of gormlock: the association's query would drop it.
func refuseInPreloads(db *gorm.DB) {
	for _, conditions := range db.Statement.Preloads {
		for _, condition := range conditions {
			if part, is := condition.(*gorm.DB); is && part != nil && part.Statement != nil {
				refuseOf(db, part, false)
			}
		}
	}
}

// refuseInAssigned fails a statement of FirstOrCreate or FirstOrInit if a db in Attrs or Assign has a clause of gormlock.
func refuseInAssigned(db *gorm.DB) {
	if !statement.IsGivenMore(db.Statement) || db.Error != nil {
		return
	}
	clauses, broken, scopes := statement.InGivenMore(db.Statement)
	for _, name := range clauses {
		if name == "FOR" || name == "gormlock:xact" {
			fault.Add(db, fmt.Errorf("%w: it is on a db in Attrs or Assign", fault.ErrSubQuery))
			return
		}
		if name == "gormlock:versions" {
			fault.Add(db, fmt.Errorf("gormlock: %s: a clause about versions or fences has no effect on a db in Attrs or Assign: put it on the statement itself", statement.TableName(db.Statement)))
			return
		}
	}
	if broken {
		fault.Add(db, fmt.Errorf("gormlock: %s: a db in Attrs or Assign has an error: look at its Error", statement.TableName(db.Statement)))
	} else if scopes {
		fault.Add(db, fmt.Errorf("gormlock: %s: scopes have no effect on a db in Attrs or Assign: leave them out, and put what they ask for on the statement itself", statement.TableName(db.Statement)))
	}
}
