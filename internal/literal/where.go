package literal

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Build writes the named clauses of a statement, as [gorm.Statement.Build] does, with constants in the text of its WHERE.
func (c *Conditions) Build(stmt *gorm.Statement, clauses ...string) {
	c.Watch(stmt)
	stmt.Build(clauses...)
}

// Watch makes sure that the WHERE clause of a statement has its constants in the text whenever it is built.
func (c *Conditions) Watch(stmt *gorm.Statement) {
	where, ok := stmt.Clauses[name]
	if !ok || where.Builder != nil || stmt.Name() != "postgres" {
		return
	}
	where.Builder = func(where clause.Clause, builder clause.Builder) {
		where.Builder = nil
		stmt, ok := builder.(*gorm.Statement)
		if !ok {
			where.Build(builder)
			return
		}
		start, first := stmt.SQL.Len(), len(stmt.Vars)
		where.Build(stmt)
		c.rewrite(stmt, start, first)
	}
	stmt.Clauses[name] = where
}

const name = "WHERE"

// rewrite writes constants into the text that was built from start on, with the arguments from first on.
func (c *Conditions) rewrite(stmt *gorm.Statement, start, first int) {
	if len(stmt.Vars) == first || stmt.Error != nil {
		return
	}
	whole := stmt.SQL.String()
	text := whole[start:]
	asked := question{text: text, table: stmt.Table}
	if stmt.TableExpr == nil {
		asked.model = stmt.Schema
	}
	condition := c.of(asked)
	if condition == nil {
		return
	}
	written, stays, ok := condition.written(text, stmt.Vars[first:], first)
	if !ok {
		return
	}
	stmt.SQL.Reset()
	stmt.SQL.Grow(len(whole) + len(written) + 300)
	_, _ = stmt.SQL.WriteString(whole[:start])
	_, _ = stmt.SQL.WriteString(written)
	kept := stmt.Vars[:first:first]
	for i, argument := range stmt.Vars[first:] {
		if stays[i] {
			kept = append(kept, argument)
		}
	}
	stmt.Vars = kept
}
