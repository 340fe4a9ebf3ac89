package gormlock

import (
	"fmt"
	"reflect"
	"strings"

	"gorm.io/gorm"
)

// claimSQL is the text that all claims of one table have in common: a query of the free rows, evaluated once, and an
// update of these rows. Those that UPDATE returns have no order: the place that each had is carried along, unless the
// order shows.
type claimSQL struct {
	lock        RowLockClause
	with        bool      // the query stands before the update, not in it
	free        string    // before the query's FROM
	locked      string    // after its LIMIT
	claimed     string    // after what is set and, if it stands there, the query
	tellsPlaces bool      // the last column is the place of a row
	few         *claimSQL // for a few rows whose order shows, nil if there is none
}

// fewRows are so few that the server may look for each of them in a list of their keys.
const fewRows = 32

// newClaimSQL takes care that no plan evaluates the query twice: as a plain sub-query, in a nested loop, it would run
// again for every row of the table and exceed its limit many times over. An array is the cheapest, but holds one column,
// and arrays would melt in it.
func newClaimSQL(db *gorm.DB, m *versionedModel, table string) *claimSQL {
	stmt := &gorm.Statement{DB: db, Table: table}
	lock := RowLockClause{strength: ForNoKeyUpdate, skip: true, of: []string{table}}
	lock.Build(stmt)
	own := stmt.Quote(table)
	columns, keys := make([]string, 0, 1), make([]string, 0, 1)
	free, same := make([]string, 0, 1), make([]string, 0, 1)
	for i, field := range m.schema.PrimaryFields {
		columns = append(columns, own+"."+stmt.Quote(field.DBName))
		keys = append(keys, fmt.Sprintf(`"gormlock_key%d"`, i+1))
		free = append(free, columns[i]+" AS "+keys[i])
		same = append(same, columns[i]+` = "gormlock_free".`+keys[i])
	}
	returning := " RETURNING " + own + ".*"
	if m.column != nil && m.column.kind == systemVersion {
		returning += ", " + m.in(stmt).column // which * leaves out (V15)
	}
	query, locked := "SELECT "+strings.Join(free, ",")+" ", " FOR "+stmt.SQL.String()
	claimed := " WHERE " + strings.Join(same, " AND ") + returning + `, "gormlock_free"."gormlock_place"`
	if len(keys) != 1 || isArray(m.schema.PrimaryFields[0].IndirectFieldType) {
		return &claimSQL{
			lock: lock, with: true, tellsPlaces: true,
			free:    `WITH "gormlock_free" AS MATERIALIZED (SELECT *, row_number() OVER () AS "gormlock_place" FROM (` + query,
			locked:  locked + `) AS "gormlock_rows") `,
			claimed: ` FROM "gormlock_free"` + claimed,
		}
	}
	return &claimSQL{
		lock: lock, tellsPlaces: true,
		free:    " FROM unnest(ARRAY(" + query,
		locked:  locked + `)) WITH ORDINALITY AS "gormlock_free"(` + keys[0] + `,"gormlock_place")`,
		claimed: claimed,
		few: &claimSQL{
			lock:    lock,
			free:    " WHERE " + columns[0] + " = ANY(ARRAY(SELECT " + columns[0] + " ",
			locked:  locked + "))",
			claimed: returning,
		},
	}
}

// chooseText finds the text for the statement, which may call its table by another name.
func (c *claim) chooseText(stmt *gorm.Statement) {
	c.text = c.model.claim
	if stmt.Table != c.model.table {
		c.text = newClaimSQL(stmt.DB, c.model, stmt.Table)
	}
	if c.text.few == nil || c.limit > fewRows {
		return
	}
	if order, shown := c.shownOrder(stmt); shown {
		c.text, c.order = c.text.few, order
	}
}

// isArray tells whether values of the type may be arrays to the server: what is made of bytes is text, bytea or a uuid.
func isArray(t reflect.Type) bool {
	return (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && t.Elem().Kind() != reflect.Uint8
}
