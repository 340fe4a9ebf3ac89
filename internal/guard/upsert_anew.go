package guard

import (
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/statement"
)

// A row that is returned at the version that its struct proposed was inserted. But a trigger before an insert may have given it another version. If
// there is such a trigger, the server is asked which rows it has inserted.

// storedAll says which rows an upsert inserted although their structs were read from rows: others have deleted those.
func (j *judge) storedAll(db *gorm.DB, from []reflect.Value) (map[int]bool, error) {
	u := j.upsert
	anew, unclear, stays := map[int]bool{}, map[string]int{}, false
	var keys [][]any
	for i := range j.rows {
		r := &u.rows[i]
		if !from[i].IsValid() || !r.exists && (u.skips || !r.loaded || r.mayBeNew) {
			continue
		}
		now := j.version.Read(from[i])
		proposed := now.Equal(j.version.Stored(j.rows[i].next)) && (r.exists || r.moves || r.apart || !u.links)
		stays = stays || proposed && j.mayStayIn(db)
		switch {
		case proposed && !stays:
			anew[i] = true
		case proposed || j.isUnclear(db, i, now):
			key, _ := statement.KeyOf(db.Statement, j.model.Schema, from[i])
			keys = append(keys, key)
			unclear[statement.KeyName(key)] = i
		}
	}
	if len(keys) == 0 || !stays && !changesInserts(db.Statement) {
		return anew, nil
	}
	if !statement.IsPostgres(db) || !journal.HasXmin(db.Statement) {
		err := fmt.Errorf("gormlock: %s: a BEFORE INSERT trigger may have set the version, and the server does not say which rows of it an upsert inserted: "+
			"save the structs one by one, or if it is a view, give the model the table itself", statement.TableName(db.Statement))
		journal.Doom(db, err)
		return nil, err
	}
	inserted, err := Rows(db, j.model, slices.Clone(j.model.Schema.PrimaryFieldDBNames), true, false, KeyIn(j.model.Schema, keys), isInserted)
	for _, row := range inserted {
		key, _ := statement.KeyOf(db.Statement, j.model.Schema, row)
		if i, is := unclear[statement.KeyName(key)]; is {
			anew[i] = true
		}
	}
	return anew, err
}

// mayStayIn reports whether a row that is returned with the proposed version may still have been updated, and the server can be asked.
func (j *judge) mayStayIn(db *gorm.DB) bool {
	return statement.IsPostgres(db) && j.version.mayStay(db.Statement, &j.draft) && journal.HasXmin(db.Statement)
}

// isUnclear reports whether a row at this version may have been inserted. It was not if the version is the one that the upsert computes from the
// struct's. The row of a child that stays may have any version. MariaDB and MySQL say no more about these.
func (j *judge) isUnclear(db *gorm.DB, i int, now column.Value) bool {
	row, r, links := &j.rows[i], &j.upsert.rows[i], j.upsert.links
	if !statement.IsPostgres(db) {
		return !j.isBump(row, now) && !r.exists && (!links || r.moves && !now.Equal(row.Expected))
	}
	return links && !r.moves || !j.isBump(row, now) || j.version.IsInteger() && now.N == 1 // a trigger may well give 1 to new rows
}

// isInserted is true for a row that its transaction has inserted and not updated since: ON CONFLICT locks a row before it updates it.
var isInserted = clause.Expr{SQL: "xmax::text = '0'"}

// isBump reports whether an upsert computes this version from the one that the struct holds.
func (j *judge) isBump(row *Row, now column.Value) bool {
	v := &j.version
	if v.IsTemporal() {
		return now.Equal(v.Stored(column.At(v.later.Time().Add(v.Tick))))
	}
	return !now.Null && now.N == max(row.Expected.N, v.Initial)+1
}

// changesInserts reports whether rows of the statement's table, or of its partitions and children, have a trigger before they are inserted.
func changesInserts(stmt *gorm.Statement) bool {
	table := statement.NameInSQL(stmt)
	switch d := dialect.Of(stmt.DB); {
	case d.IsMySQL():
		return journal.Ask(stmt, "insert triggers", table, "SELECT EXISTS (SELECT 1 FROM information_schema.triggers "+
			"WHERE event_object_schema = DATABASE() AND event_object_table = ? AND action_timing = 'BEFORE' AND event_manipulation = 'INSERT')", stmt.Table)
	case !d.IsPostgres():
		return false
	}
	return journal.Ask(stmt, "insert triggers", table, `WITH RECURSIVE below(id) AS (SELECT to_regclass($1)::oid UNION SELECT one.id FROM below, LATERAL (`+
		`SELECT inhrelid FROM pg_inherits WHERE inhparent = below.id UNION ALL `+
		`SELECT refobjid FROM pg_rewrite r JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass `+
		`WHERE r.ev_class = below.id) one(id)) `+
		`SELECT EXISTS (SELECT FROM pg_trigger, below WHERE tgrelid = below.id AND NOT tgisinternal AND tgenabled <> 'D' AND tgtype & 7 = 7)`, table)
}
