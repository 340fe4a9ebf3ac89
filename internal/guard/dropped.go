package guard

import (
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/statement"
)

// dropped returns the error of an update or delete whose caller limits its rows by a clause that GORM does not build for this database: more rows
// would be written than the caller asked for.
func (p *plan) dropped(stmt *gorm.Statement) error {
	if isBare(stmt) && len(stmt.Joins) == 0 && !stmt.Distinct {
		return nil
	}
	what := p.droppedClause(stmt)
	if what == "" {
		return nil
	}
	table := statement.TableName(stmt)
	if len(p.model.Schema.PrimaryFieldDBNames) != 1 {
		return fmt.Errorf("gormlock: %s %s: GORM leaves out %s here, so other rows would be written too: put the condition into Where, as a sub-query", p.op, table, what)
	}
	return fmt.Errorf("gormlock: %s %s: GORM leaves out %s here, so other rows would be written too: select the rows by a sub-query, Where(\"%s IN (?)\", …)",
		p.op, table, what, p.model.Schema.PrimaryFieldDBNames[0])
}

// droppedClause names the clause that GORM leaves out, or returns "" if the rows are the same without it: a key and a LIMIT of 1 mean one row.
func (p *plan) droppedClause(stmt *gorm.Statement) string {
	for _, join := range stmt.Joins { // GORM builds joins only for queries
		if _, relation := statement.RelationAlias(stmt, join.Name, join.Alias); !relation || join.JoinType != clause.LeftJoin {
			return "Joins"
		}
	}
	built := p.clausesOf(stmt)
	isDropped := func(name string) bool {
		_, asked := stmt.Clauses[name]
		return asked && !slices.Contains(built, name)
	}
	_, groups := statement.Having(stmt)
	from, _ := stmt.Clauses["FROM"].Expression.(clause.From) // empty after a query
	switch {
	case isDropped("FROM") && len(from.Joins)+len(from.Tables) > 0:
		return "clause.From"
	case isDropped("LIMIT") && p.isLimited(stmt):
		return "Limit and Offset"
	case isDropped("GROUP BY") && (p.isBulk() || len(groups) > 0):
		return "Group and Having"
	case stmt.Distinct && p.isBulk():
		return "Distinct"
	}
	return ""
}

// clausesOf are the clauses that GORM builds for the statement. A soft delete is built as an update.
func (p *plan) clausesOf(stmt *gorm.Statement) []string {
	if p.op == OpDelete && !stmt.Unscoped && len(p.model.Schema.DeleteClauses) > 0 {
		return stmt.DB.Callback().Update().Clauses
	}
	return stmt.BuildClauses
}

// isLimited reports whether the LIMIT clause means fewer rows than the statement would write. Structs name their rows, so the offset of the page on
// which they were read does not matter.
func (p *plan) isLimited(stmt *gorm.Statement) bool {
	limit, plain := stmt.Clauses["LIMIT"].Expression.(clause.Limit)
	most := limit.Limit != nil && *limit.Limit >= 0
	switch {
	case !plain:
		return true
	case p.isBulk():
		return most || limit.Offset > 0
	}
	return most && *limit.Limit < p.distinct()
}
