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

// A row that is returned at the version that its struct proposed was inserted. But a trigger can give an inserted row another version, or give an
// updated row that version. If a table has triggers, the statement itself tells: it notes each row that it updates in a setting of the transaction.
// For a row that it has not noted it returns a version that no row has, see [column.Version.Unread]. The xmax of a row does not tell: a foreign key
// to the row sets it too.

// tell makes an upsert say which rows it inserts, if their versions may not show it.
func (d *draft) tell(stmt *gorm.Statement) {
	u, v := d.upsert, &d.version
	if u.skips || v.IsSystem() || !statement.IsPostgres(stmt.DB) || !d.returning.wanted() || !slices.Contains(d.returning.columns(), v.Field) {
		return
	}
	u.tells = slices.ContainsFunc(u.rows, func(r upsertRow) bool { return r.unsure || u.mustExist(r) }) && changesInserts(stmt)
}

// mustExist reports whether the row of a struct existed when it was read: if the upsert inserts the row, others have deleted it.
func (u *upsert) mustExist(r upsertRow) bool {
	return r.exists || !u.skips && r.loaded && !r.mayBeNew
}

func isUnsure(r upsertRow) bool { return r.unsure }

// noted is the text under which the statement notes a row: its key, and the moment of the statement.
func (b builder) noted() string {
	text := "ROW(statement_timestamp()"
	for _, field := range b.draft.model.Schema.PrimaryFields {
		text += "," + statement.Quoted(b.Statement, b.Table, field.DBName)
	}
	return text + ")::text"
}

// note begins an expression that notes an updated row and has the new version as its value: the caller writes that next, and then end.
func (b builder) note() (end string) {
	if !b.draft.upsert.tells {
		return ""
	}
	b.Text("CASE WHEN set_config('gormlock.updated',", b.noted(), ",true) IS NOT NULL THEN ")
	return " END"
}

// returnTold returns the version of a row. If the row was inserted although its struct was read, it returns the version that no row has. A child that
// may be new gets that one if its row was inserted at the version that it proposed, and NULL if its row was updated and has another version.
func (b builder) returnTold() {
	d, v := b.draft, &b.draft.version
	mustExist, unsure, name := d.structsWhere(d.upsert.mustExist), d.structsWhere(isUnsure), statement.Quoted(b.Statement, b.Table, v.Field.DBName)
	version := name
	if v.IsInteger() {
		version += "::bigint" // the column may be narrower than its field
	}
	b.Text("CASE WHEN current_setting('gormlock.updated',true)=", b.noted(), " THEN ")
	if len(unsure) > 0 {
		b.Text("CASE WHEN ")
		b.keysSent(unsure)
		b.Text(" AND NOT ")
		b.isAt(name, unsure, v.proposes)
		b.Text(" THEN NULL ELSE ", version, " END")
	} else {
		b.Text(version)
	}
	if len(mustExist) > 0 {
		b.Text(" WHEN ")
		b.keysSent(mustExist)
		b.Text(" THEN ", v.UnreadInSQL())
	}
	if len(unsure) > 0 {
		b.Text(" WHEN ")
		b.keysSent(unsure)
		b.Text(" AND ")
		b.isAt(name, unsure, v.proposes)
		b.Text(" THEN ", v.UnreadInSQL())
	}
	b.Text(" ELSE ", version, " END AS ", b.Quote(v.Field.DBName))
}

// heedTold settles the children that may have been new, by what the statement says of their rows.
func (w *Write) heedTold(from []reflect.Value) {
	for i := range w.rows {
		r, row, v := &w.upsert.rows[i], &w.rows[i], &w.version
		if !w.upsert.tells || !r.unsure || !from[i].IsValid() {
			continue
		}
		switch now := v.Read(from[i]); {
		case v.IsUnread(now):
			v.Write(from[i], v.Stored(row.next))
			r.unsure = false
		case !v.Unset(now) && !now.Equal(v.Stored(row.next)): // a trigger has chosen it
			row.next, r.unsure = now, false
		}
	}
}

// storedAll says which rows an upsert inserted although their structs were read from rows: others have deleted those.
func (j *judge) storedAll(db *gorm.DB, from []reflect.Value) (map[int]bool, error) {
	u := j.upsert
	anew, unclear := map[int]bool{}, false
	for i := range j.rows {
		r := u.rows[i]
		if !from[i].IsValid() || !u.mustExist(r) {
			continue
		}
		switch now := j.version.Read(from[i]); {
		case u.tells:
			anew[i] = j.version.IsUnread(now)
		case now.Equal(j.version.Stored(j.rows[i].next)) && (r.exists || r.moves || r.apart || !u.links):
			anew[i] = true
		case dialect.Of(db).IsMySQL():
			row := &j.rows[i]
			unclear = unclear || !j.isBump(row, now) && !r.exists && (!u.links || r.moves && !now.Equal(row.Expected))
		}
	}
	if !unclear || !changesInserts(db.Statement) {
		return anew, nil
	}
	err := fmt.Errorf("gormlock: %s: a BEFORE INSERT trigger may have set the version, and the server does not say which rows of it an upsert inserted: "+
		"save the structs one by one", statement.TableName(db.Statement))
	journal.Doom(db, err)
	return nil, err
}

// wasKept reports whether a row that the upsert has updated is still at its old version. A row that may be new can have been inserted at that one.
func (j *judge) wasKept(db *gorm.DB, i int, now column.Value) bool {
	u, v := j.upsert, &j.version
	return u.tells && u.mustExist(u.rows[i]) && (!u.links || u.rows[i].moves) && !v.hasMoved(&j.rows[i], now) && !v.mayStay(db.Statement, &j.draft)
}

// isInserted is true for a row that its transaction has inserted, and neither updated nor locked since: ON CONFLICT locks a row before it updates it.
var isInserted = clause.Expr{SQL: "xmax::text = '0'"}

// isBump reports whether an upsert computes this version from the one that the struct holds.
func (j *judge) isBump(row *Row, now column.Value) bool {
	v := &j.version
	if v.IsTemporal() {
		return now.Equal(v.Stored(column.At(v.later.Time().Add(v.Tick))))
	}
	return !now.Null && now.N == max(row.Expected.N, v.Initial)+1
}

// changesInserts reports whether a trigger of the statement's table, or of its partitions and children, may set a version. On PostgreSQL it also
// reports whether a trigger, or a foreign key from the table to itself, may lock an inserted row.
func changesInserts(stmt *gorm.Statement) bool {
	table := statement.NameInSQL(stmt)
	switch d := dialect.Of(stmt.DB); {
	case d.IsMySQL():
		return journal.Ask(stmt, "triggers", table, "SELECT EXISTS (SELECT 1 FROM information_schema.triggers "+
			"WHERE event_object_schema = DATABASE() AND event_object_table = ? AND action_timing = 'BEFORE' AND event_manipulation = 'INSERT')", stmt.Table)
	case !d.IsPostgres():
		return false
	}
	return journal.Ask(stmt, "triggers", table, `WITH RECURSIVE below AS (SELECT to_regclass($1)::oid AS id UNION SELECT one.id FROM below, LATERAL (`+
		`SELECT inhrelid AS id FROM pg_inherits WHERE inhparent = below.id UNION ALL `+
		`SELECT refobjid FROM pg_rewrite r JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass `+
		`WHERE r.ev_class = below.id) AS one) `+
		`SELECT EXISTS (SELECT FROM pg_trigger, below WHERE tgrelid = below.id AND NOT tgisinternal AND tgenabled <> 'D') `+
		`OR EXISTS (SELECT FROM pg_constraint, below WHERE contype = 'f' AND conrelid = below.id AND confrelid IN (SELECT id FROM below))`, table)
}
