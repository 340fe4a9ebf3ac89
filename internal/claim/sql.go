package claim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/statement"
)

// assignments are what the claim sets: the caller's assignments, and the times that GORM sets in every update.
func (c *claim) assignments(stmt *gorm.Statement) (clause.Set, error) {
	set := make(clause.Set, 0, len(c.assign)+1)
	if len(c.assign) == 0 {
		return nil, c.refused(stmt, fmt.Errorf("nothing is assigned, so the rows would stay free: assign what marks them as taken"))
	}
	names := make([]string, 0, len(c.assign))
	for name := range c.assign {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		field, err := fieldOf(stmt.Schema, name)
		if err != nil {
			return nil, c.refused(stmt, err)
		}
		if other := assignmentOf(set, field.DBName); other >= 0 {
			return nil, c.refused(stmt, fmt.Errorf("%q and %q are the same column", names[other], names[i]))
		}
		if c.model.Column != nil && c.model.Column.Field == field {
			return nil, c.refused(stmt, fmt.Errorf("%q is the version, which a claim moves itself: leave it out", name))
		}
		value := c.assign[name]
		if query, ok := value.(*gorm.DB); ok {
			value = []any{query} // GORM puts brackets around it
		}
		set = append(set, clause.Assignment{Column: clause.Column{Name: field.DBName}, Value: value})
	}
	if stmt.SkipHooks {
		return set, nil
	}
	for _, time := range statement.UpdateTimes(stmt.DB, stmt.Schema) {
		if assignmentOf(set, time.Column.Name) < 0 {
			set = append(set, time)
		}
	}
	return set, nil
}

// assignmentOf is the place of a column in set, -1 if it is not assigned.
func assignmentOf(set clause.Set, column string) int {
	return slices.IndexFunc(set, func(a clause.Assignment) bool { return a.Column.Name == column })
}

func (*claim) refused(stmt *gorm.Statement, err error) error {
	return fmt.Errorf("gormlock: claim %s: %w", stmt.Schema.Table, err)
}

// writeStatement writes the statement that claims the free rows and returns them.
func (c *claim) writeStatement(stmt *gorm.Statement) *guard.Write {
	if !dialect.Of(stmt.DB).UpdateReturns() {
		return c.writeLocking(stmt)
	}
	if c.text.with {
		c.writeFree(stmt)
	}
	statement.Write(stmt, "UPDATE ")
	stmt.WriteQuoted(statement.OwnTable)
	_ = stmt.WriteByte(' ')
	write := guard.NewClaim(c.model, c.guard)
	write.WriteSet(stmt, c.set)
	statement.Write(stmt, " FROM ")
	if !c.text.with {
		c.writeFree(stmt)
	}
	statement.Write(stmt, c.text.claimed)
	c.leave(stmt)
	return write
}

// writeFree writes the query of the free rows.
func (c *claim) writeFree(stmt *gorm.Statement) {
	head := stmt.SQL.Len()
	statement.Write(stmt, c.text.free)
	start := stmt.SQL.Len()
	install.Of(stmt.DB).Constants.Build(stmt, "FROM", "WHERE", "ORDER BY")
	c.mustReach(stmt, start)
	statement.EndComment(stmt)
	c.watch(stmt, head, start)
	if c.text.watched {
		statement.Write(stmt, c.text.locked)
	}
	// The limit is written out: with a parameter the server could not know how few rows there will be, and might plan
	// to read the whole table for them.
	statement.Write(stmt, " LIMIT ", strconv.Itoa(c.limit))
	if given, _ := stmt.Clauses["LIMIT"].Expression.(clause.Limit); given.Offset > 0 {
		statement.Write(stmt, " OFFSET ", strconv.Itoa(given.Offset))
	}
	if !c.text.watched {
		statement.Write(stmt, c.text.locked)
	}
	statement.Write(stmt, c.text.end)
}

// watch makes the query leave out rows that have changed, and fail on keys that are NULL. It does nothing if all conditions are on the row itself
// and the key cannot be NULL. The query begins at head, and its FROM at start.
func (c *claim) watch(stmt *gorm.Statement, head, start int) {
	text, told := stmt.SQL.String(), seenByXmin
	if stmt.Error != nil || !c.from.judges && !c.from.nullable && sqltext.JudgesRow(text[start:], c.hasColumn) {
		return
	}
	if c.from.noXmin {
		told = seenWhole
	}
	c.text = c.textIn(stmt, c.from.form(told))
	stmt.SQL.Reset()
	statement.Write(stmt, text[:head], c.text.free, text[start:])
}

func (c *claim) hasColumn(name string) bool { return c.model.Schema.FieldsByDBName[name] != nil }

// mustReach refuses a claim if the lock does not reach the rows that FROM reads, because two claims would get the same row. It also refuses
// conditions of the caller that close a bracket of ours and so leave the query that is locked and limited. FROM begins at start.
func (c *claim) mustReach(stmt *gorm.Statement, start int) {
	if mark.RefuseOpen(stmt, start); stmt.DryRun {
		return
	}
	if err := c.text.lock.Reach(stmt, "SELECT * "+stmt.SQL.String()[start:]); err != nil {
		fault.Add(stmt.DB, err)
	}
}

// leave removes from the statement what was needed to build it. The claim has only looked at the joined associations: they are
// loaded as by Preload.
func (c *claim) leave(stmt *gorm.Statement) {
	if associations := joinedAssociations(stmt); len(associations) > 0 {
		preloads := make(map[string][]any, len(stmt.Preloads)+len(associations))
		for _, association := range associations {
			preloads[association] = nil
		}
		maps.Copy(preloads, stmt.Preloads)
		stmt.Preloads = preloads
	}
	stmt.Joins = nil
}
