package gormlock

import (
	"fmt"
	"maps"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"
)

// assignments are what the claim sets: what it was given, UpdatedAt as GORM sets it, and gormlock's own columns.
func (c claim) assignments(free *gorm.DB) (clause.Set, error) {
	s := free.Statement.Schema
	refuse := func(err error) (clause.Set, error) { return nil, fmt.Errorf("gormlock: claim %s: %w", s.Table, err) }
	if len(c.assign) == 0 {
		return refuse(fmt.Errorf("nothing is assigned, so the rows would stay free"))
	}
	seen := map[string]string{}
	for name := range c.assign {
		field, err := fieldOf(s, name)
		if err != nil {
			return refuse(err)
		}
		if other, twice := seen[field.DBName]; twice {
			return refuse(fmt.Errorf("%q and %q are one column", min(name, other), max(name, other)))
		}
		seen[field.DBName] = name
	}
	if err := refuseOwnColumns(versionedModelOf(free), seen); err != nil {
		return refuse(err)
	}
	model := reflect.New(s.ModelType)
	update := free.Session(&gorm.Session{NewDB: true, SkipHooks: free.Statement.SkipHooks}).Model(model.Interface()).Statement
	update.Schema, update.Table = s, free.Statement.Table
	update.Dest, update.ReflectValue = maps.Clone(c.assign), model.Elem()
	set := callbacks.ConvertToAssignments(update)
	if update.Error != nil {
		return refuse(update.Error)
	}
	return set, nil
}

// claimQuery is the statement that claims the free rows, as a query that returns them.
//
// A CTE that is not materialized may be evaluated again for every row of the table (in a nested loop), and exceed its
// limit many times over. The rows that UPDATE returns have no order, so the place that each had is carried along.
func claimQuery(db *gorm.DB, from *gorm.Statement, set clause.Set) (*gorm.DB, *versionWrite) {
	query := db.Session(&gorm.Session{NewDB: true, Context: from.Context, SkipHooks: from.SkipHooks}).Model(reflect.New(from.Schema.ModelType).Interface())
	stmt := query.Statement
	stmt.Schema, stmt.Table, stmt.TableExpr, stmt.Vars = from.Schema, from.Table, from.TableExpr, from.Vars
	text := func(parts ...string) {
		for _, part := range parts {
			_, _ = stmt.WriteString(part)
		}
	}
	text(`WITH "gormlock_free" AS MATERIALIZED (SELECT *, row_number() OVER () AS "gormlock_place" FROM (`, from.SQL.String(), `) AS "gormlock_rows")`,
		`, "gormlock_claimed" AS (UPDATE `)
	stmt.WriteQuoted(clause.Table{Name: clause.CurrentTable})
	text(` `)
	m := versionedModelOf(query)
	w := writeClaimSet(stmt, m, set)
	text(` FROM "gormlock_free" WHERE `)
	for i, field := range from.Schema.PrimaryFields {
		if i > 0 {
			text(` AND `)
		}
		stmt.WriteQuoted(clause.Column{Table: clause.CurrentTable, Name: field.DBName})
		text(` = "gormlock_free"."`, claimKey(i), `"`)
	}
	text(` RETURNING `, stmt.Quote(clause.Table{Name: from.Table}), `.*`)
	writeOwnReturning(stmt, m)
	text(`, "gormlock_free"."gormlock_place") SELECT * FROM "gormlock_claimed" ORDER BY "gormlock_place"`)
	carryOver(stmt, from)
	return query, w
}

// carryOver gives the claim's statement what the scopes said that is no part of its text.
func carryOver(stmt, from *gorm.Statement) {
	stmt.Preloads = maps.Clone(from.Preloads)
	for _, association := range joinedAssociations(from) {
		if _, ok := stmt.Preloads[association]; !ok {
			stmt.Preloads[association] = nil
		}
	}
	stmt.Unscoped, stmt.ColumnMapping = from.Unscoped, from.ColumnMapping
	if lock, ok := from.Clauses[xactLockName]; ok {
		stmt.Clauses[xactLockName] = lock
	}
	from.Settings.Range(func(key, value any) bool {
		stmt.Settings.Store(key, value)
		return true
	})
}
