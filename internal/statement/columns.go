package statement

import (
	"context"
	"database/sql"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/sqltext"
)

// Columns stands in the place of a statement's pool while GORM executes a query, and notes which columns the query returns.
type Columns struct {
	gorm.ConnPool
	Renamed bool     // GORM gives columns other names than the text of the query has
	Names   []string // the columns, if all are wanted, or two of them may have one name
	All     bool     // they are wanted in any case
	Asked   bool     // the query came this way
}

// QueryContext notes the columns before anybody reads a row.
func (c *Columns) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	rows, err := c.ConnPool.QueryContext(ctx, query, args...)
	c.Asked = true
	if err != nil || !c.All && !c.Renamed && !sqltext.MayDouble(query) {
		return rows, err
	}
	names, _ := rows.Columns()    // if there are none any more, neither is a row
	c.Names = slices.Clone(names) // GORM renames them in place
	return rows, nil
}

// Build makes it fit into the statement's clauses, where it is found again. It writes nothing.
func (*Columns) Build(clause.Builder) {}

const columnsClause = "gormlock:columns"

// NoteColumns lets the query of the statement note its columns, all of them or those of which two may have one name.
func NoteColumns(stmt *gorm.Statement, all bool) {
	if left, is := stmt.ConnPool.(*Columns); is { // by a query that panicked
		stmt.ConnPool = left.ConnPool
	}
	c := &Columns{ConnPool: stmt.ConnPool, Renamed: len(stmt.ColumnMapping) > 0, All: all}
	stmt.ConnPool = c
	stmt.Clauses[columnsClause] = clause.Clause{Expression: c}
}

// ColumnsNoted gives the statement its pool back, and returns what was noted: nil if nothing was to be.
func ColumnsNoted(stmt *gorm.Statement) *Columns {
	c, noted := stmt.Clauses[columnsClause].Expression.(*Columns)
	if !noted {
		return nil
	}
	delete(stmt.Clauses, columnsClause)
	if stmt.ConnPool == gorm.ConnPool(c) {
		stmt.ConnPool = c.ConnPool
	}
	return c
}
