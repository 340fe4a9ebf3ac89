package aggregate

import (
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// BeforeCreate moves the roots of rows that are about to be created, or found by an upsert.
func BeforeCreate(db *gorm.DB) { before(db, (*part).created) }

// BeforeUpdate moves the roots of the rows, and the roots to which the rows go.
func BeforeUpdate(db *gorm.DB) { before(db, (*part).updated) }

// BeforeDelete moves the roots of rows that are about to be deleted.
func BeforeDelete(db *gorm.DB) { before(db, (*part).deleted) }

const partClause = "gormlock:part"

// Build writes nothing. It makes part a clause, so that the statement can carry it.
func (p *part) Build(clause.Builder) {}

// before runs right before a write, after its hooks and after the associations that are saved before it.
func before(db *gorm.DB, write func(*part) error) {
	m := model.Of(db)
	if db.Error != nil || db.DryRun || m == nil || m.Err != nil || len(m.Roots) == 0 {
		return
	}
	if statement.Transaction(db.Statement) == nil {
		fault.Add(db, fmt.Errorf("%w: %s has a root, whose version moves with it", fault.ErrNoTransaction, m.Schema.Name))
		return
	}
	p := newPart(db, m)
	db.Statement.Clauses[partClause] = clause.Clause{Expression: p}
	if err := write(p); err != nil {
		fault.Add(db, err)
	}
}

// After moves the roots of the rows as the server has stored them, if they have not been moved yet: a default, a
// trigger or an upsert may have given a row a root that the statement did not name.
func After(db *gorm.DB) {
	stmt := db.Statement
	p, _ := stmt.Clauses[partClause].Expression.(*part)
	if p == nil {
		return
	}
	delete(stmt.Clauses, partClause)
	stmt.Settings.Delete(unreadSetting)
	if p.narrowed {
		stmt.Clauses["WHERE"] = p.where
	}
	var rows []reflect.Value
	if p.seen != nil {
		rows = p.seen.Rows(stmt)
	}
	if db.Error == nil && db.RowsAffected == 0 && asked.Of(stmt).Touches() && !asked.Of(stmt).IsTentative() {
		fault.Add(db, gorm.ErrRecordNotFound) // the error rolls the moves of the roots back
	}
	p.db, p.written = db, true
	p.explainFailure()
	if db.Error != nil {
		if len(p.done) > 0 {
			journal.Doom(db, db.Error)
		}
		return
	}
	err := p.mustBeFound(rows)
	if found := len(p.there); p.narrowed && found > 0 && db.RowsAffected > int64(found) {
		err = fmt.Errorf("gormlock: %s: nothing was written: several rows have the same key, and not all of them are meant: declare a key that is unique in the table", p.model.Schema.Table)
	}
	if err == nil && p.seen == nil && db.RowsAffected > 0 && !p.deletes {
		rows, err = p.ask()
	}
	if err == nil {
		if dialect.Of(db).IsMySQL() && p.keeps { // it returns the rows that are there too
			rows = slices.DeleteFunc(rows, func(row reflect.Value) bool { return p.isThere(p.storedKey(row)) })
		}
		for _, row := range rows {
			p.addOf(row)
			if p.late { // it may have had another root
				p.addThere(row)
			}
		}
		err = p.move()
	}
	if err == nil && db.RowsAffected > 0 {
		err = p.moveNamed()
	}
	if err != nil {
		journal.Doom(db, err)
		fault.Add(db, err)
	}
}
