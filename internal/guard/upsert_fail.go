package guard

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/statement"
)

// An upsert of MariaDB and MySQL has no condition, so it cannot skip a row that a guard refuses. Instead the first
// assignment fails the statement, which then writes nothing. Afterwards the reason is looked for.

// failWhereRefused puts the conditions of an upsert into the first assignment: later assignments would see the values
// that it has assigned.
func (b builder) failWhereRefused(found *clause.OnConflict) {
	var guarded string
	switch {
	case b.w.version.is():
		guarded = b.w.version.Field.DBName
	case b.w.fence.guards():
		guarded = b.w.fence.Field.DBName
	default:
		return
	}
	first := guardedAssignment{w: b.w, column: guarded, where: found.Where.Exprs, meets: found.Columns}
	set := clause.Set{{Column: clause.Column{Name: guarded}, Value: nil}}
	for _, a := range found.DoUpdates {
		if a.Column.Name == guarded {
			first.value = a.Value
		} else {
			set = append(set, a)
		}
	}
	set[0].Value = first
	found.DoUpdates, found.Where = set, clause.Where{}
}

// guardedAssignment is the value of a column that is assigned only if conditions hold.
type guardedAssignment struct {
	w      *Write
	column string
	value  any
	where  []clause.Expression
	meets  []clause.Column // the columns by which rows are to be found: any other unique index finds them too
}

// Build writes it.
func (g guardedAssignment) Build(to clause.Builder) {
	b := builderOf(to, g.w)
	own := b.Quote(clause.Column{Table: b.Table, Name: g.column})
	if len(g.where) == 0 && len(g.meets) == 0 {
		b.assigned(g.value)
		return
	}
	b.Text("IF(")
	dialect.OrFail(b.Text, own, func() {
		b.Text("1=1")
		for _, column := range g.meets {
			b.Text(" AND ")
			b.Column(b.Table, column.Name)
			b.Text(dialect.Of(b.DB).Same(), b.proposed(column.Name))
		}
		if len(g.where) > 0 {
			b.Text(" AND ")
			inBrackets(g.where).Build(b.Statement)
		}
	})
	b.Text(",")
	b.assigned(g.value)
	b.Text(",", own, ")")
}

// assigned writes what an upsert assigns.
func (b builder) assigned(value any) {
	if column, is := dialect.Excluded(value); is {
		b.Text(b.proposed(column))
		return
	}
	b.Expression(value)
}

// OnlyThese is a condition that must hold for each row that an upsert by the primary key updates. On MariaDB and MySQL,
// whose drivers leave conditions out, the statement fails if it does not hold.
type OnlyThese struct{ clause.Expression }

// failOutside makes the upsert of a row without guards fail if [OnlyThese] does not hold.
func (b builder) failOutside(c clause.Clause) clause.Clause {
	found, ok := c.Expression.(clause.OnConflict)
	isOnly := func(e clause.Expression) bool { _, only := e.(OnlyThese); return only }
	if !ok || found.DoNothing || !dialect.Of(b.DB).IsMySQL() || !slices.ContainsFunc(found.Where.Exprs, isOnly) {
		return c
	}
	keys := b.Schema.PrimaryFieldDBNames
	first := clause.Assignment{Column: clause.Column{Name: keys[0]}, Value: clause.Column{Table: b.Table, Name: keys[0]}}
	if len(found.DoUpdates) > 0 {
		first = found.DoUpdates[0]
		found.DoUpdates = found.DoUpdates[1:]
	}
	guarded := guardedAssignment{column: first.Column.Name, value: first.Value, where: found.Where.Exprs}
	for _, key := range keys {
		guarded.meets = append(guarded.meets, clause.Column{Name: key})
	}
	first.Value = guarded
	found.DoUpdates, found.Where = append(clause.Set{first}, found.DoUpdates...), clause.Where{}
	c.Expression = found
	return c
}

// refuseIgnore refuses a create that skips rows without an error: its structs would count as stored, and the next save of
// one would overwrite the existing row.
func (w *Write) refuseIgnore(stmt *gorm.Statement) error {
	insert, _ := stmt.Clauses["INSERT"].Expression.(clause.Insert)
	if !strings.Contains(strings.ToUpper(insert.Modifier), "IGNORE") {
		return nil
	}
	return fmt.Errorf("gormlock: %s: INSERT IGNORE does not say which rows it left out: use clause.OnConflict{DoNothing: true}", w.model.Schema.Name)
}

// fitsUpsert refuses what an upsert of a guarded row cannot express on this server: the driver would leave it out without
// an error.
func (w *Write) fitsUpsert(stmt *gorm.Statement, conflict clause.OnConflict) error {
	if !dialect.Of(stmt.DB).IsMySQL() || conflict.DoNothing {
		return nil
	}
	var what string
	switch {
	case len(conflict.Where.Exprs) > 0:
		what = "Where"
	case len(conflict.TargetWhere.Exprs) > 0:
		what = "TargetWhere"
	case conflict.OnConstraint != "":
		what = "OnConstraint"
	default:
		return nil
	}
	return fmt.Errorf("gormlock: %s: %s is not possible in an upsert of %s, which ignores it: lock the row and update it, or create it",
		w.model.Schema.Name, what, dialect.Of(stmt.DB))
}

// explainUpsert turns the failure of a guarded upsert into the conflict of the rows that were refused.
func (w *Write) explainUpsert(db *gorm.DB) bool {
	if !dialect.IsFailure(db.Error) {
		return false
	}
	failed := db.Error
	db.Error = nil
	err := w.whyFencedConflicting(db)
	if err == nil {
		err = w.whyUpsertFailed(db)
	}
	if err == nil {
		err = fmt.Errorf("gormlock: %s: the upsert found a row by another unique index than it names, or one that was changed meanwhile: nothing was written: %w",
			statement.TableName(db.Statement), failed)
	}
	w.memory.Restore()
	w.refuse(db, err)
	return true
}

// whyUpsertFailed returns which of the structs' rows were refused.
func (w *Write) whyUpsertFailed(db *gorm.DB) error {
	if w.upsert == nil || !w.version.is() {
		return nil
	}
	var known []*Row
	for i, r := range w.upsert.rows {
		if r.loaded || r.unread {
			known = append(known, &w.rows[i])
		}
	}
	if len(known) == 0 {
		return nil
	}
	return w.whyRowsFailed(db, known)
}

func (w *Write) whyRowsFailed(db *gorm.DB, known []*Row) error {
	keys := make([][]any, len(known))
	for i, row := range known {
		keys[i] = row.Key
	}
	found, err := w.look(db, keys)
	if err != nil {
		return errors.Join(w.staleError(db.Statement, known[0]).Err(), err)
	}
	var all []error
	for i, row := range known {
		if !found[i].IsValid() || w.version.accepts(row, w.version.Read(found[i].Value)) {
			continue // it would have been inserted, or updated
		}
		if !w.version.Loaded(row.Expected) {
			all = append(all, w.missing(db.Statement, row.Key, w.version.Any(w.version.Read(found[i].Value))))
			continue
		}
		all = append(all, w.stale(db.Statement, row, w.version.Any(w.version.Read(found[i].Value)), false).Err())
	}
	return joined(all)
}
