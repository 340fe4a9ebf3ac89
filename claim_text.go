package gormlock

import (
	"fmt"
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// claimSQL is the text that all claims of one table have in common: a query of the free rows, evaluated once, whose keys
// are "gormlock_free", and an update of these rows. The rows that UPDATE returns have no order, so the place that each
// had is carried along.
type claimSQL struct {
	lock    RowLockClause
	with    bool      // the query stands before the update, not in it
	free    string    // before the query's FROM
	locked  string    // after its LIMIT
	claimed string    // after what is set and, if it stands there, the query
	few     *claimSQL // the same for a few rows, if that differs
}

// fewRows are so few that a search for each place costs less than a join with all of them. It is by the key that a row has
// now: where the server changes keys, the place of the first claim's rows is not known, and they stand at its end.
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
	all := own + ".*"
	if m.column != nil && m.column.kind == systemVersion {
		all += ", " + m.in(stmt).column // which * leaves out
	}
	query, locked := "SELECT "+strings.Join(free, ",")+" ", " FOR "+stmt.SQL.String()
	claimed := " WHERE " + strings.Join(same, " AND ") + " RETURNING " + all + `, "gormlock_free"."gormlock_place"`
	if len(keys) != 1 || isArray(m.schema.PrimaryFields[0]) {
		return &claimSQL{
			lock: lock, with: true,
			free:    `WITH "gormlock_free" AS MATERIALIZED (SELECT *, row_number() OVER () AS "gormlock_place" FROM (` + query,
			locked:  locked + `) AS "gormlock_rows") `,
			claimed: `"gormlock_free"` + claimed,
		}
	}
	const array = `"gormlock_free"."gormlock_keys"`
	return &claimSQL{
		lock:    lock,
		free:    "unnest(ARRAY(" + query,
		locked:  locked + `)) WITH ORDINALITY AS "gormlock_free"(` + keys[0] + `,"gormlock_place")`,
		claimed: claimed,
		few: &claimSQL{
			lock:    lock,
			free:    "(SELECT ARRAY(" + query,
			locked:  locked + `) AS "gormlock_keys" OFFSET 0) AS "gormlock_free"`, // with OFFSET it stays one sub-query
			claimed: " WHERE " + columns[0] + " = ANY(" + array + ") RETURNING " + all + ", array_position(" + array + "," + columns[0] + `) AS "gormlock_place"`,
		},
	}
}

// claimIn returns the text for the statement, which may call its table by another name, and a claim of up to limit rows.
func (m *versionedModel) claimIn(stmt *gorm.Statement, limit int) *claimSQL {
	text := m.claim
	if stmt.Table != m.table {
		text = newClaimSQL(stmt.DB, m, stmt.Table)
	}
	if text.few != nil && limit <= fewRows && !m.movesKeys.Load() {
		return text.few
	}
	return text
}

// isArray tells whether values of the field may be arrays to the server: what is made of bytes is text, bytea or a uuid.
func isArray(field *schema.Field) bool {
	t := field.IndirectFieldType
	return strings.HasSuffix(string(field.DataType), "[]") || (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && t.Elem().Kind() != reflect.Uint8
}
