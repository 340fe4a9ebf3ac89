package guard

import (
	"database/sql"
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// ran says with how many conditions a statement has run. A chain that is used again has them still, and what its caller adds then holds
// beside them.
type ran struct {
	of    *schema.Schema // its model
	own   int            // when it began
	all   int            // at its end: GORM adds the key of a struct, and what keeps deleted rows out
	keyed bool           // it wrote structs by their keys
	made  any            // the structs that a create stored, which are the model of the chain now
}

// RanClause is the name under which a statement carries it.
const RanClause = "gormlock:ran"

// Build makes a ran fit into a statement's clauses. It writes nothing.
func (*ran) Build(clause.Builder) {}

// ranBefore is how the statement before this one has run, in the same chain.
func ranBefore(stmt *gorm.Statement) ran {
	var before ran
	if w, _ := stmt.Clauses[writeClause].Expression.(*Write); w != nil && w.outcome.over {
		before = w.ran
		before.of = w.model.Schema
	}
	if r, _ := stmt.Clauses[RanClause].Expression.(*ran); r != nil && r.all >= before.all {
		before = *r
	}
	return before
}

// beginRead and endRead note how a read runs on a single connection. There the tx of db.Connection is a chain, though it does not look like
// one. Elsewhere somebody who reads by a chain that he has made, and then writes by it, knows its conditions.
func beginRead(stmt *gorm.Statement) {
	if _, one := stmt.ConnPool.(*sql.Conn); one {
		stmt.Clauses[RanClause] = clause.Clause{Expression: &ran{of: stmt.Schema, own: conditionsOf(stmt)}}
	}
}

func endRead(stmt *gorm.Statement) {
	if r, _ := stmt.Clauses[RanClause].Expression.(*ran); r != nil {
		r.all = conditionsOf(stmt)
	}
}

func conditionsOf(stmt *gorm.Statement) int {
	_, where := statement.Conditions(stmt)
	return len(where)
}

// refuseKept refuses a write under the conditions of the statement before it, unless its caller may mean them: he has said no others. What it
// writes by a key may be under them too, but then it must find its row.
func (w *Write) refuseKept(db *gorm.DB, before ran) {
	if db.Error != nil || before.all == 0 {
		return
	}
	bulk := !w.hasKeys(db.Statement)
	w.where.kept = !bulk && before.own > 0
	if w.ran.own > before.all || bulk && before.keyed {
		fault.Add(db, errors.New("gormlock: nothing was executed: "+kept))
	}
}

// KeptConditions is the error of a claim under the conditions of the statement before it, or around it, which would find fewer rows, or none.
func KeptConditions(stmt *gorm.Statement) error {
	around := writeOf(stmt)
	switch {
	case around != nil && around.passes.always != "":
		return errPassedOn(around.passes.always)
	case ranBefore(stmt).all > 0:
		return errors.New("gormlock: nothing was executed: " + kept)
	}
	return nil
}

// refuseMade refuses a delete that would take the structs of the create before it for its own.
func refuseMade(db *gorm.DB, before ran) {
	if db.Error == nil && before.made != nil && isSame(db.Statement.Model, before.made) {
		fault.Add(db, errors.New("gormlock: nothing was executed: a chain that has created structs keeps them as its model, so begin each statement "+
			"from a chain, as the db of db.Connection is one, with Session(&gorm.Session{NewDB: true})"))
	}
}

const kept = "the conditions of the statement before this one are still there: a chain that was used before keeps them, so begin each statement " +
	"from a chain, as the db of db.Connection is one, with Session(&gorm.Session{NewDB: true}), or make db.Where(…).Session(&gorm.Session{}) " +
	"of the conditions that many have"
