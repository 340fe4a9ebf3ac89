package guard

import (
	"database/sql"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/whereabouts"
)

// used is what a statement leaves in its chain: the next statement of the chain carries on with it. The tx of db.Connection is such a chain,
// although it does not look like one. Everywhere else the caller has made the chain, and knows what it has.
type used struct {
	of       *schema.Schema // the model
	model    any            // the struct, or the structs, that GORM took for the model
	own      int32          // how many conditions there were when the statement began
	all      int32          // and at its end, including the ones that GORM added: the key of a struct
	keyed    bool           // it wrote structs by their keys
	created  bool
	cleared  bool      // it emptied the foreign keys of structs, for Association(…).Clear
	leftover *leftover // on a single connection
}

// UsedClause is the clause with which a statement on a single connection carries it. Elsewhere its Write does.
const UsedClause = "gormlock:used"

// Build lets used be one of a statement's clauses. It writes nothing.
func (*used) Build(clause.Builder) {}

// usedBefore is what the previous statement in the same chain has left.
func usedBefore(stmt *gorm.Statement) used {
	var before used
	if u, _ := stmt.Clauses[UsedClause].Expression.(*used); u != nil {
		before = *u
	} else if w, _ := stmt.Clauses[writeClause].Expression.(*Write); w != nil && w.outcome.over {
		before = w.used
	}
	if save := savedBefore(stmt); save != nil {
		before.of, before.leftover, before.all = save.of, save.leftover, max(before.all, save.own)
	}
	return before
}

// beginUse notes that a statement begins on a single connection, and returns what the previous one has left.
func beginUse(stmt *gorm.Statement) (before used) {
	whereabouts.ShowHidden(stmt)
	before = usedBefore(stmt)
	if _, one := stmt.ConnPool.(*sql.Conn); one {
		u := before
		u.own = conditionsOf(stmt)
		stmt.Clauses[UsedClause] = clause.Clause{Expression: &u}
	}
	return before
}

// endUse notes what such a statement leaves.
func endUse(stmt *gorm.Statement) {
	if u, _ := stmt.Clauses[UsedClause].Expression.(*used); u != nil {
		u.end(stmt, writeOf(stmt))
		u.mark(stmt)
	}
}

// BeginRead notes a query that begins.
func BeginRead(db *gorm.DB) { beginUse(db.Statement) }

// EndRead notes that a query ends.
func EndRead(db *gorm.DB) { endUse(db.Statement) }

func (u *used) end(stmt *gorm.Statement, w *Write) {
	u.of, u.model = stmt.Schema, stmt.Model
	if u.created = w != nil && w.upsert != nil; !u.created { // a create has no conditions
		u.all, u.keyed = conditionsOf(stmt), w != nil && len(w.rows) > 0
		u.cleared = u.keyed && statement.InClear(stmt)
	}
}

// conditionsOf counts the conditions of a statement, except the one that excludes deleted rows.
func conditionsOf(stmt *gorm.Statement) int32 {
	_, where := statement.Conditions(stmt)
	if _, soft := stmt.Clauses["soft_delete_enabled"]; soft && len(where) > 0 {
		return int32(len(where) - 1) //nolint:gosec // nobody has that many
	}
	return int32(len(where)) //nolint:gosec // nobody has that many
}

// refuseLeft refuses a write that the previous statement in the same chain would change into another one than its caller asked for.
func (w *Write) refuseLeft(db *gorm.DB, before used) {
	if db.Error != nil {
		return
	}
	what := w.leftBy(db.Statement, before)
	if what == "" && before.leftover != nil {
		what = before.leftover.to(w, db.Statement)
	}
	switch {
	case what == "":
	case w.op == OpDelete && before.cleared && statement.InUnlinking():
		fault.Add(db, errNotDeleted(w.model.Schema.Table, before.of.Table))
	default:
		fault.Add(db, errLeft(what))
	}
}

// leftBy names what the previous statement has left that would change the write. If a caller adds conditions to other conditions, that may be
// meant, but not if they come from a write. A write by key may be under such conditions too, but then it must find its row.
func (w *Write) leftBy(stmt *gorm.Statement, before used) string {
	if w.op == OpUpdate && !statement.IsSame(stmt.Dest, stmt.Model) && w.isOfAnother(stmt) && (statement.IsSame(stmt.Model, before.model) || statement.InSave()) {
		return "the struct" // an association has left it in the chain too, and nothing shows that
	}
	if before.all == 0 && before.model == nil && before.leftover == nil || w.op == OpCreate {
		return ""
	}
	bulk := !w.hasKeys(stmt)
	taken := statement.IsSame(stmt.Model, before.model)
	switch {
	case before.all > 0 && (w.used.own > before.all || bulk && (before.keyed || before.leftover != nil)):
		return "the conditions"
	case w.op == OpDelete && taken && bulk && (before.created || before.leftover != nil) && !statement.IsSame(stmt.Dest, stmt.Model) && w.hasKeyIn(stmt, stmt.Model):
		return "the struct"
	}
	w.where.kept = !bulk && before.own > 0
	return ""
}

// isOfAnother reports whether an update is given a struct with another key than the struct that it writes.
func (w *Write) isOfAnother(stmt *gorm.Statement) bool {
	given := reflect.Indirect(reflect.ValueOf(stmt.Dest))
	if given.Kind() != reflect.Struct || given.Type() != w.model.Schema.ModelType || w.memory.Count != 1 {
		return false
	}
	key, _ := statement.KeyOf(stmt, w.model.Schema, given)
	of, _ := statement.KeyOf(stmt, w.model.Schema, w.memory.Row(0))
	return key != nil && of != nil && statement.KeyName(key) != statement.KeyName(of)
}

func (w *Write) hasKeyIn(stmt *gorm.Statement, value any) (found bool) {
	statement.EachStruct(reflect.ValueOf(value), func(row reflect.Value) {
		if row.Type() == w.model.Schema.ModelType {
			key, _ := statement.KeyOf(stmt, w.model.Schema, row)
			found = found || key != nil
		}
	})
	return found
}

// LeftConditions is the error of a claim under the conditions of the previous or the surrounding statement. It would find fewer rows, or none.
func LeftConditions(stmt *gorm.Statement) error {
	around := writeOf(stmt)
	switch {
	case around != nil && around.passes.always != "":
		return errPassedOn(around.passes.always)
	case usedBefore(stmt).all > 0:
		return errLeft("the conditions")
	}
	return nil
}

func errLeft(what string) error {
	return fmt.Errorf("gormlock: nothing was executed: %s of the statement before this one would be part of it: %s", what, newChain)
}

// newChain is the cure for errors of a chain that is used again.
const newChain = "a chain that was used before keeps what it was given, so begin each statement from a chain, as the db of db.Connection is one, with " +
	"Session(&gorm.Session{NewDB: true}), or make db.Where(…).Session(&gorm.Session{}) of what many statements have"
