package rowlock

import (
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/statement"
)

// Preload does not load an association that Joins has read, so the lock of Preloaded would not reach it. And a query cannot lock the
// nullable side of a LEFT JOIN. So under a lock, an association that is both joined and preloaded is loaded again, by its own
// query.

// joinsKept is the key under which a statement keeps its joins while some are hidden from Preload.
const joinsKept = "gormlock:joins"

// hidden are the joins of a statement.
type hidden[T any] struct{ joins []T }

func (hidden[T]) Build(clause.Builder) {}

// fitsPreloaded refuses joined associations that Preload names and that it could not load again in the same way.
func (l Lock) fitsPreloaded(stmt *gorm.Statement) error {
	if !l.Preloaded || len(stmt.Preloads) == 0 {
		return nil
	}
	for _, join := range stmt.Joins {
		alias, isRelation := statement.RelationAlias(stmt, join.Name, join.Alias)
		first, _, nested := strings.Cut(join.Name, ".")
		if !isRelation || !isPreloaded(stmt, first) || slices.Contains(l.Of, alias) && !nested {
			continue
		}
		if nested && !isPreloaded(stmt, join.Name) {
			return fmt.Errorf("gormlock: %s: Preloaded reads %s again to lock it, which drops what Joins(%q) read: add Preload(%[3]q)", statement.TableName(stmt), first, join.Name)
		}
		if join.On != nil || len(join.Conds)+len(join.Selects)+len(join.Omits) > 0 {
			return fmt.Errorf("gormlock: %s: Preloaded does not lock %s, because its Joins has conditions: lock it with InnerJoins and Of(%q), or leave its Preload out",
				statement.TableName(stmt), join.Name, alias)
		}
	}
	return nil
}

// isPreloaded reports whether Preload names this path, or a longer one.
func isPreloaded(stmt *gorm.Statement, path string) bool {
	_, all := stmt.Preloads[clause.Associations]
	if all && !strings.Contains(path, ".") {
		return true
	}
	for preload := range stmt.Preloads {
		if preload == path || strings.HasPrefix(preload, path+".") {
			return true
		}
	}
	return false
}

// loadJoined hides joins from Preload until ShowJoins, so that Preload loads their associations again.
func (l Lock) loadJoined(stmt *gorm.Statement) {
	if !l.Preloaded || len(stmt.Preloads) == 0 || len(stmt.Joins) == 0 {
		return
	}
	stmt.Clauses[joinsKept] = clause.Clause{Expression: keep(&stmt.Joins)}
	for i := range stmt.Joins {
		join := &stmt.Joins[i]
		alias, isRelation := statement.RelationAlias(stmt, join.Name, join.Alias)
		first, _, nested := strings.Cut(join.Name, ".")
		if isRelation && isPreloaded(stmt, first) && (nested || !slices.Contains(l.Of, alias)) {
			join.Name = ""
		}
	}
}

// keep gives the statement a copy of its joins, and returns a function that restores them.
func keep[T any](joins *[]T) clause.Expression {
	kept := hidden[T]{*joins}
	*joins = slices.Clone(*joins)
	return kept
}

// ShowJoins runs after Preload. It restores the joins of the statement, because the statement may be used again.
func ShowJoins(db *gorm.DB) {
	stmt := db.Statement
	if kept, ok := stmt.Clauses[joinsKept]; ok {
		delete(stmt.Clauses, joinsKept)
		putBack(&stmt.Joins, kept.Expression)
	}
}

func putBack[T any](joins *[]T, kept clause.Expression) {
	if k, ok := kept.(hidden[T]); ok {
		*joins = k.joins
	}
}
