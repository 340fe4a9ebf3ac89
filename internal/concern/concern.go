// Package concern knows which queries gormlock has nothing to do with. They cost nearly what they cost without the plugin.
package concern

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/hooks"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// none stands among the clauses of a query, while it runs, if it is none of gormlock's concern.
type none struct{}

const noneClause = "gormlock:none"

// Build makes a none fit into a statement's clauses. It writes nothing.
func (none) Build(clause.Builder) {}

// IsNone reports whether a query that runs is none of gormlock's concern.
func IsNone(stmt *gorm.Statement) bool {
	_, is := stmt.Clauses[noneClause]
	return is
}

// Query lets handlers see the queries that concern them. A query that fails, and what its hooks ask for, they see in any case.
func Query(of hooks.Read) hooks.Read {
	return hooks.Read{
		BeforeRead: func(db *gorm.DB) {
			if isNone(db) {
				db.Statement.Clauses[noneClause] = clause.Clause{Expression: none{}}
				return
			}
			forget(db.Statement)
			of.BeforeRead(db)
		},
		AfterRead: func(db *gorm.DB) {
			is := IsNone(db.Statement)
			if is {
				delete(db.Statement.Clauses, noneClause)
			}
			if !is || db.Error != nil {
				of.AfterRead(db)
			}
		},
		AfterHooks: of.AfterHooks,
	}
}

// Row makes the handlers of a query whose rows the caller scans see all of them.
func Row(of hooks.Read) hooks.Read {
	before := of.BeforeRead
	of.BeforeRead = func(db *gorm.DB) {
		forget(db.Statement)
		before(db)
	}
	return of
}

// forget takes away what a query in the same chain has left that a panic has ended.
func forget(stmt *gorm.Statement) { delete(stmt.Clauses, noneClause) }

// isNone reports, before a query, that nothing of gormlock is in it, that it reads a model without tags of gormlock into structs of the model,
// and that no transaction can take back what it reads.
func isNone(db *gorm.DB) bool {
	stmt := db.Statement
	return db.Error == nil && isPlain(stmt) && journal.DatabaseUnder(stmt.ConnPool) != nil && !memory.HasStrays() && readsOwn(stmt) && hasNoTags(db)
}

// isPlain reports whether a query has conditions, an order and a limit, and nothing else.
func isPlain(stmt *gorm.Statement) bool {
	if stmt.Schema == nil || stmt.Table != stmt.Schema.Table || stmt.TableExpr != nil || stmt.SQL.Len() > 0 ||
		len(stmt.Selects)+len(stmt.Omits)+len(stmt.Joins)+len(stmt.Preloads)+len(stmt.ColumnMapping) > 0 {
		return false
	}
	known := 0
	for _, name := range [...]string{"WHERE", "ORDER BY", "LIMIT", noneClause} {
		if _, is := stmt.Clauses[name]; is {
			known++
		}
	}
	return known == len(stmt.Clauses) && !mark.IsOn(stmt) && !statement.IsGivenMore(stmt)
}

// readsOwn reports whether the destination is structs of the model.
func readsOwn(stmt *gorm.Statement) bool {
	t := reflect.TypeOf(stmt.Dest)
	for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice) {
		t = t.Elem()
	}
	return t == stmt.Schema.ModelType
}

// hasNoTags reports whether neither the model nor anything that it may hold has tags of gormlock.
func hasNoTags(db *gorm.DB) bool {
	m := model.Of(db)
	return m != nil && m.Err == nil && !m.NeedsJournal(db)
}
