package gormlock

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// assignments are what the claim sets: what it was given, and the times that GORM sets in every update.
func (c *claim) assignments(free *gorm.DB) (clause.Set, error) {
	stmt := free.Statement
	set := make(clause.Set, 0, len(c.assign)+1)
	if len(c.assign) == 0 {
		return nil, c.refused(stmt, fmt.Errorf("nothing is assigned, so the rows would stay free"))
	}
	assigned := make(map[string]string, len(c.assign))
	names := make([]string, 0, len(c.assign))
	for name := range c.assign {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		field, err := fieldOf(stmt.Schema, name)
		if err != nil {
			return nil, c.refused(stmt, err)
		}
		if other, twice := assigned[field.DBName]; twice {
			return nil, c.refused(stmt, fmt.Errorf("%q and %q are one column", other, name))
		}
		assigned[field.DBName] = name
		value := c.assign[name]
		if query, ok := value.(*gorm.DB); ok {
			value = []any{query} // in brackets, as GORM does it
		}
		set = append(set, clause.Assignment{Column: clause.Column{Name: field.DBName}, Value: value})
	}
	if err := refuseOwnColumns(versionedModelOf(free), assigned); err != nil {
		return nil, c.refused(stmt, err)
	}
	if stmt.SkipHooks {
		return set, nil
	}
	for _, time := range updateTimes(free, stmt.Schema) {
		if _, given := assigned[time.Column.Name]; !given {
			set = append(set, time)
		}
	}
	return set, nil
}

func (*claim) refused(stmt *gorm.Statement, err error) error {
	return fmt.Errorf("gormlock: claim %s: %w", stmt.Schema.Table, err)
}

// claimFree makes the query of the free rows, which is built, the statement that claims and returns them. The rows that
// UPDATE returns have no order, so the place that each had is carried along.
func claimFree(stmt *gorm.Statement, set clause.Set, guard *fenceWrite) *versionWrite {
	free, m := stmt.SQL.String(), versionedModelOf(stmt.DB)
	stmt.SQL.Reset()
	stmt.SQL.Grow(len(free) + 400)
	text := func(parts ...string) {
		for _, part := range parts {
			_, _ = stmt.WriteString(part)
		}
	}
	quote := func(name string) { stmt.DB.QuoteTo(stmt, name) }
	once := onceEvaluated(stmt.Schema)
	if once.with {
		text(once.before, free, once.after, ` `)
	}
	text(`UPDATE `)
	stmt.WriteQuoted(clause.Table{Name: clause.CurrentTable})
	text(` `)
	write := writeClaimSet(stmt, &versionWrite{model: m, fence: guard, op: "claim", armed: true}, set)
	text(` FROM `)
	if once.with {
		text(`"gormlock_free"`)
	} else {
		text(once.before, free, once.after)
	}
	text(` WHERE `)
	for i, field := range stmt.Schema.PrimaryFields {
		if i > 0 {
			text(` AND `)
		}
		quote(stmt.Table)
		text(`.`)
		quote(field.DBName)
		text(` = "gormlock_free"."`, claimKey(i), `"`)
	}
	text(` RETURNING `)
	quote(stmt.Table)
	text(`.*`)
	writeOwnReturning(stmt, m)
	text(`, "gormlock_free"."gormlock_place"`) // the last column: see claimedRows

	// What the scopes joined was only looked at: an association is loaded as Preload does.
	if associations := joinedAssociations(stmt); len(associations) > 0 {
		stmt.Preloads = maps.Clone(stmt.Preloads)
		for _, association := range associations {
			if _, ok := stmt.Preloads[association]; !ok {
				stmt.Preloads[association] = nil
			}
		}
	}
	stmt.Joins = nil
	for _, name := range []string{claimName, versionIntentClause, "FOR", "SELECT"} {
		delete(stmt.Clauses, name)
	}
	return write
}

// source is the text around the query of the free rows that makes it "gormlock_free", with its keys and its places.
type source struct {
	before, after string
	with          bool // it stands before the statement, as WITH
}

var (
	ofOneKey = source{before: `unnest(ARRAY(`, after: `)) WITH ORDINALITY AS "gormlock_free"("` + claimKeys + `1","gormlock_place")`}
	ofKeys   = source{before: `WITH "gormlock_free" AS MATERIALIZED (SELECT *, row_number() OVER () AS "gormlock_place" FROM (`, after: `) AS "gormlock_rows")`, with: true}
)

// onceEvaluated is a source that no plan evaluates twice: as a plain sub-query, in a nested loop, it would run again for
// every row of the table and exceed its limit many times over. An array is the cheapest, but holds one column, and arrays
// would melt in it.
func onceEvaluated(s *schema.Schema) source {
	if len(s.PrimaryFields) == 1 && !isArray(s.PrimaryFields[0].IndirectFieldType) {
		return ofOneKey
	}
	return ofKeys
}

// isArray tells whether values of the type may be arrays to the server: what is made of bytes is text, bytea or a uuid.
func isArray(t reflect.Type) bool {
	return (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && t.Elem().Kind() != reflect.Uint8
}
