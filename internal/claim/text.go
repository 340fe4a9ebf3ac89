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

// claimSQL is the text that all claims of one table have in common: a query of the free rows, which is evaluated once, and an
// update of these rows. "gormlock_free" are the keys of the free rows. The rows that UPDATE returns have no order, so the text
// carries the place of each row along.
type claimSQL struct {
	lock    rowlock.Lock
	with    bool      // the query is in a WITH before the update, not in its FROM
	free    string    // before the query's FROM
	locked  string    // the locking clause
	watched bool      // the query leaves out some locked rows, so the LIMIT comes after locked, not before
	end     string    // the end of the query
	claimed string    // after the SET and, if it is in the update, the query
	few     *claimSQL // the same for a few rows, if that differs
}

// fewRows is how many rows are so few that a search for each row's place costs less than a join with all of them. The search
// uses the row's current key. If the server changes keys, the first claim does not find the places, and such rows come last.
const fewRows = 32

// newClaimSQL writes the text so that no plan evaluates the query twice: a plain sub-query in a nested loop would run
// again for every row of the table and exceed its limit many times over. An array of the keys is the cheapest way. But it holds
// only one column; arrays in it would become one array of more dimensions; and unnest would split composite values.
//
// If a trigger may veto the change of a row, the text counts the free rows, and does not return a row that is still the same.
// named is the table with its schema.
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
		all += ", " + m.In(stmt).Column // * does not include it
	}
	const was = `"gormlock_was"`
	carried, place := keys, `"gormlock_free"."gormlock_place"`
	if is.vetoed && m.Column != nil && !m.Column.IsSystem() { // a changed row has another version, so it differs
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
			end:     `) AS "gormlock_keys" OFFSET 0) AS "gormlock_free"`, // OFFSET keeps the planner from merging the sub-query
			claimed: " WHERE " + columns[0] + " = ANY(" + array + ") RETURNING " + all + ", array_position(" + array + "," + columns[0] + `) AS "gormlock_place"`,
		},
	}
}

// form says how the claims of a table are written.
type form struct {
	told   seen // how to see that a row is unchanged, and only then free; empty: each row that matches is free
	melts  bool // an array cannot hold the keys: see newClaimSQL
	vetoed bool // a trigger may leave a row as it is
}

// claimedModel is what claims of a model remember.
type claimedModel struct {
	asks      string                    // the name of the question to the server: see journal.Known
	text      *claimSQL                 // for the empty form
	others    sync.Map                  // form → *claimSQL
	movesKeys atomic.Bool               // the server changes the key of a row when it is claimed
	places    atomic.Pointer[rowPlaces] // the fields for the columns of the last claim
}

// claimedModelOf is what claims of the model remember.
func claimedModelOf(db *gorm.DB, m *model.Model) *claimedModel {
	type key struct{}
	return m.Remember(key{}, func() any { //nolint:forcetypeassert // nothing else is
		return &claimedModel{text: newClaimSQL(db, m, m.Table, "", form{}), asks: "claim by " + strings.Join(m.Schema.PrimaryFieldDBNames, ",")}
	}).(*claimedModel)
}

// textIn returns the text for the statement, which may call its table by another name, and for the claim's limit.
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
