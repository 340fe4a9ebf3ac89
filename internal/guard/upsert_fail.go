package guard

import (
	"slices"

	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/mark"
)

// An upsert of MariaDB and MySQL has no condition, so it cannot skip a row that a guard refuses. Instead the first assignment fails the statement,
// which then writes nothing. Afterwards the reason is determined.

// failWhereRefused puts the conditions of an upsert into the first assignment, because later assignments would see the new values.
func (b builder) failWhereRefused(found *clause.OnConflict) {
	var guarded string
	switch {
	case b.draft.version.is():
		guarded = b.draft.version.Field.DBName
	case b.draft.fence.guards():
		guarded = b.draft.fence.Field.DBName
	default:
		return
	}
	first := guardedAssignment{draft: b.draft, column: guarded, where: found.Where.Exprs, meets: found.Columns}
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
	draft  *draft
	column string
	value  any
	where  []clause.Expression
	meets  []clause.Column // the columns by which rows should be found: any other unique index finds rows too
}

// Build writes it.
func (g guardedAssignment) Build(to clause.Builder) {
	b := builderOf(to, g.draft)
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
			mark.Brackets(g.where).Build(b.Statement)
		}
	})
	b.Text(",")
	b.assigned(g.value)
	b.Text(",", own, ")")
}

// assigned writes the value of an upsert's assignment.
func (b builder) assigned(value any) {
	if column, is := dialect.Excluded(value); is {
		b.Text(b.proposed(column))
		return
	}
	b.Expression(value)
}

// OnlyThese is a condition that must hold for each row that an upsert by the primary key updates. On MariaDB and MySQL, whose drivers leave
// conditions out, the statement fails if it does not hold.
type OnlyThese struct{ clause.Expression }

// OnlyTheseAnd is the condition combined with the caller's.
func OnlyTheseAnd(only clause.Expression, own []clause.Expression) []clause.Expression {
	return beside(OnlyThese{only}, own)
}

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
