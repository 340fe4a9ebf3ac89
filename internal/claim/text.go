package claim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/rowlock"
	"github.com/gormlock/gormlock/internal/statement"
)

// claimSQL is the text that all claims of one table have in common: a query of the free rows, evaluated once, whose keys
// are "gormlock_free", and an update of these rows. The rows that UPDATE returns have no order, so the place that each
// had is carried along.
type claimSQL struct {
	lock    rowlock.Lock
	with    bool      // the query stands before the update, not in it
	free    string    // before the query's FROM
	locked  string    // what locks the rows
	watched bool      // and leaves out some that it has locked: the LIMIT stands behind it, not before
	end     string    // of the query
	claimed string    // after what is set and, if it stands there, the query
	few     *claimSQL // the same for a few rows, if that differs
}

// fewRows are so few that a search for each place costs less than a join with all of them. It is by the key that a row has
// now: where the server changes keys, the place of the first claim's rows is not known, and they stand at its end.
const fewRows = 32

// newClaimSQL takes care that no plan evaluates the query twice: as a plain sub-query, in a nested loop, it would run
// again for every row of the table and exceed its limit many times over. An array is the cheapest, but holds one column,
// arrays would melt in it, and unnest would take rows apart.
//
// Where a trigger may veto the change of a row, the rows that are free are counted, and a row that is what it was counts as not changed.
// Named is the table with its schema.
func newClaimSQL(db *gorm.DB, m *model.Model, table, named string, is form) *claimSQL {
	stmt := &gorm.Statement{DB: db, Table: table}
	lock := rowlock.Lock{Strength: rowlock.ForNoKeyUpdate, Skip: true, Of: []string{table}}
	lock.Build(stmt)
	own := stmt.Quote(table)
	columns, keys := make([]string, 0, 1), make([]string, 0, 1)
	free, same := make([]string, 0, 1), make([]string, 0, 1)
	for i, field := range m.Schema.PrimaryFields {
		columns = append(columns, own+"."+stmt.Quote(field.DBName))
		keys = append(keys, fmt.Sprintf(`"gormlock_key%d"`, i+1))
		free = append(free, columns[i]+" AS "+keys[i])
		same = append(same, columns[i]+` = "gormlock_free".`+keys[i])
	}
	all := own + ".*"
	if m.Column != nil && m.Column.IsSystem() {
		all += ", " + m.In(stmt).Column // which * leaves out
	}
	const was = `"gormlock_was"`
	carried, place := keys, `"gormlock_free"."gormlock_place"`
	if is.vetoed && m.Column != nil && !m.Column.IsSystem() { // its version moves, so another row is left
		free, carried = append(free, seenWhole.of(own)+" AS "+was), append(slices.Clone(keys), was)
		place = "CASE WHEN " + seenWhole.of(own) + `<>"gormlock_free".` + was + " THEN " + place + ` END AS "gormlock_place"`
	}
	query, locked := "SELECT "+strings.Join(free, ",")+" ", " FOR "+stmt.SQL.String()
	if is.told != "" {
		before, behind := is.told.unchanged(own, named, columns, keys, carried)
		query, locked = before+"SELECT "+strings.Join(free, ",")+","+is.told.of(own)+` AS "gormlock_state" `, locked+behind
	}
	claimed := " WHERE " + strings.Join(same, " AND ") + " RETURNING " + all + ", " + place
	if len(keys) != 1 || is.melts || is.vetoed {
		text := &claimSQL{
			lock: lock, with: true, watched: is.told != "",
			free:    `WITH "gormlock_free" AS MATERIALIZED (SELECT *, row_number() OVER () AS "gormlock_place" FROM (` + query,
			locked:  locked,
			end:     `) AS "gormlock_rows") `,
			claimed: `"gormlock_free"` + claimed,
		}
		if is.vetoed {
			text.end = `) AS "gormlock_rows"), "gormlock_changed" AS (`
			text.claimed += `) SELECT "gormlock_changed".* FROM (SELECT count(*) AS "gormlock_count" FROM "gormlock_free") AS "gormlock_found" LEFT JOIN "gormlock_changed" ON "gormlock_place" IS NOT NULL` +
				` WHERE CASE WHEN "gormlock_place" IS NOT NULL THEN true WHEN "gormlock_count" > 0 THEN ` + vetoed.raise(`"gormlock_count"`) + " END"
		}
		return text
	}
	const array = `"gormlock_free"."gormlock_keys"`
	return &claimSQL{
		lock: lock, watched: is.told != "",
		free:    "unnest(ARRAY(" + query,
		locked:  locked,
		end:     `)) WITH ORDINALITY AS "gormlock_free"(` + keys[0] + `,"gormlock_place")`,
		claimed: claimed,
		few: &claimSQL{
			lock: lock, watched: is.told != "",
			free:    "(SELECT ARRAY(" + query,
			locked:  locked,
			end:     `) AS "gormlock_keys" OFFSET 0) AS "gormlock_free"`, // with OFFSET it stays one sub-query
			claimed: " WHERE " + columns[0] + " = ANY(" + array + ") RETURNING " + all + ", array_position(" + array + "," + columns[0] + `) AS "gormlock_place"`,
		},
	}
}

// form is how the claims of a table are written.
type form struct {
	told   seen // how a row is told to be unchanged, without which it is not free; empty: each is that matches
	melts  bool // an array of the keys would not be one of the same keys: see newClaimSQL
	vetoed bool // a trigger may leave a row as it is
}

// claimedModel is what claims of a model remember.
type claimedModel struct {
	asks      string                    // of a table
	text      *claimSQL                 // of the empty form
	others    sync.Map                  // texts of other forms
	movesKeys atomic.Bool               // the server changes the key of a row that is claimed
	places    atomic.Pointer[rowPlaces] // where the columns of the last claim went
}

// claimedModelOf is what claims of the model remember.
func claimedModelOf(db *gorm.DB, m *model.Model) *claimedModel {
	type key struct{}
	return m.Remember(key{}, func() any { //nolint:forcetypeassert // nothing else is
		return &claimedModel{text: newClaimSQL(db, m, m.Table, "", form{}), asks: "claim by " + strings.Join(m.Schema.PrimaryFieldDBNames, ",")}
	}).(*claimedModel)
}

// textIn returns the text for the statement, which may call its table by another name, and a claim of up to limit rows.
func (c *claim) textIn(stmt *gorm.Statement, is form) *claimSQL {
	remembered := claimedModelOf(stmt.DB, c.model)
	text := remembered.text
	if stmt.Table != c.model.Table || is.told != "" && stmt.TableExpr != nil {
		named := cmp.Or(statement.NameInSQL(stmt), stmt.Quote(stmt.Table))
		text = newClaimSQL(stmt.DB, c.model, stmt.Table, named, is)
	} else if is != (form{}) {
		other, known := remembered.others.Load(is)
		if !known {
			other, _ = remembered.others.LoadOrStore(is, newClaimSQL(stmt.DB, c.model, stmt.Table, stmt.Quote(stmt.Table), is))
		}
		text = other.(*claimSQL) //nolint:forcetypeassert // nothing else is
	}
	if text.few != nil && c.limit <= fewRows && !remembered.movesKeys.Load() {
		return text.few
	}
	return text
}
