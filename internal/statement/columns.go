package statement

import (
	"context"
	"database/sql"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/sqltext"
)

// Columns replaces a statement's pool while GORM executes a query, and notes which columns the query returns.
type Columns struct {
	gorm.ConnPool
	Renamed bool     // MapColumns gives columns other names than in the text of the query
	Names   []string // the columns, if All is set or two of them may have the same name
	All     bool     // note the columns in any case
	Asked   bool     // the query was sent through this pool
}

// QueryContext notes the columns before anybody reads a row.
func (c *Columns) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	rows, err := c.ConnPool.QueryContext(ctx, query, args...)
	c.Asked = true
	if err != nil || !c.All && !c.Renamed && !sqltext.MayDouble(query) {
		return rows, err
	}
	names, _ := rows.Columns()    // an error means that the rows are closed
	c.Names = slices.Clone(names) // GORM renames them in place
	return rows, nil
}

// Build writes nothing. It makes Columns a clause, so that the statement can carry it.
func (*Columns) Build(clause.Builder) {}

const columnsClause = "gormlock:columns"

// NoteColumns makes the query of the statement note its columns: always if all is set, otherwise only if two of them may have the same name.
func NoteColumns(stmt *gorm.Statement, all bool) {
	if left, is := stmt.ConnPool.(*Columns); is { // left by a query that panicked
		stmt.ConnPool = left.ConnPool
	}
	c := &Columns{ConnPool: stmt.ConnPool, Renamed: len(stmt.ColumnMapping) > 0, All: all}
	stmt.ConnPool = c
	stmt.Clauses[columnsClause] = clause.Clause{Expression: c}
}

// ColumnsNoted restores the statement's pool, and returns what was noted, nil without NoteColumns.
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
