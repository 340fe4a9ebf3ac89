package guard

import (
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/match"
	"github.com/gormlock/gormlock/internal/statement"
)

// A row that is returned at the version that its struct proposed was inserted. But a trigger can give an inserted row another version, or give an
// updated row that version, and others can make such a trigger at any time. So PostgreSQL itself tells, in the statement: ON CONFLICT locks a row
// before it updates it, so the row that it returns has an xmax, and one that it inserts has none. (After the statement the xmax no longer tells: a
// foreign key to the row sets it too.) The rows of a view have no xmax. There the statement notes each row that it updates, in a setting of the
// transaction, which takes longer. Instead of the version of an inserted row it returns one that no row has, see [column.Version.Unread].

// tell makes an upsert say which rows it inserts.
func (d *draft) tell(stmt *gorm.Statement) {
	u, v := d.upsert, &d.version
	if u.skips || v.IsSystem() || !statement.IsPostgres(stmt.DB) || !d.returning.wanted() || !slices.Contains(d.returning.columns(), v.Field) ||
		!slices.ContainsFunc(u.rows, func(r upsertRow) bool { return r.unsure || u.mustExist(r) }) {
		return
	}
	u.tells = byNote
	if hasXmax(stmt) {
		u.tells = byXmax
	}
}

// telling is how an upsert says which rows it inserts.
type telling uint8

const (
	byVersion telling = iota // by their versions alone
	byXmax
	byNote
)

// hasXmax reports whether the statement may ask for the xmax of the rows of its table. If the answer is no longer true, the server refuses the
// statement, or it notes rows for nothing.
func hasXmax(stmt *gorm.Statement) bool {
	table := statement.NameInSQL(stmt)
	return journal.Ask(stmt, "xmax", table, "SELECT c.relkind='r' AND a.amname='heap' AND has_column_privilege(c.oid,x.attnum,'SELECT') "+
		"FROM pg_class c JOIN pg_attribute x ON x.attrelid=c.oid AND x.attname='xmax' JOIN pg_am a ON a.oid=c.relam WHERE c.oid=to_regclass($1)", table)
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
	if b.draft.upsert.tells != byNote {
		return ""
	}
	b.Text("CASE WHEN set_config('gormlock.updated',", b.noted(), ",true) IS NOT NULL THEN ")
	return " END"
}

// updated writes the condition that the statement has updated the row.
func (b builder) updated() {
	if b.draft.upsert.tells == byXmax {
		b.Text(statement.Quoted(b.Statement, b.Table, "xmax"), "::text<>'0'")
		return
	}
	b.Text("current_setting('gormlock.updated',true)=", b.noted())
}

// returnTold returns the version of a row. If the row was inserted although its struct was read, it returns the version that no row has. So it does
// if a trigger gave the inserted row a key that no struct has, unless it may be one that the database made. A child that may be new gets that
// version if its row was inserted at the version that it proposed, and NULL if its row was updated and has another one.
func (b builder) returnTold() {
	d, v := b.draft, &b.draft.version
	mustExist, unsure, name := d.structsWhere(d.upsert.mustExist), d.structsWhere(isUnsure), statement.Quoted(b.Statement, b.Table, v.Field.DBName)
	created := slices.DeleteFunc(d.structsWhere(func(r upsertRow) bool { return !r.unsure && !d.upsert.mustExist(r) }), d.isKeyless)
	version, unread := name, v.UnreadInSQL()
	if v.IsInteger() {
		version += "::bigint" // the column may be narrower than its field
	}
	b.Text("CASE WHEN ")
	b.updated()
	b.Text(" THEN ")
	if len(unsure) > 0 {
		b.Text("CASE WHEN NOT ")
		b.isAt(name, unsure, v.proposes)
		if others := append(slices.Clip(mustExist), created...); len(others) > 0 {
			b.Text(" AND NOT ")
			b.keysSent(others)
		}
		b.Text(" THEN NULL ELSE ", version, " END WHEN ")
		b.keysSent(unsure)
		b.Text(" AND ")
		b.isAt(name, unsure, v.proposes)
		b.Text(" THEN ", unread)
	} else {
		b.Text(version)
	}
	switch known := append(slices.Clip(unsure), created...); {
	case d.makesKeys() && len(mustExist) > 0:
		b.Text(" WHEN ")
		b.keysSent(mustExist)
		b.Text(" THEN ", unread, " ELSE ", version)
	case d.makesKeys():
		b.Text(" ELSE ", version)
	case len(known) > 0:
		b.Text(" WHEN ")
		b.keysSent(known)
		b.Text(" THEN ", version, " ELSE ", unread)
	default:
		b.Text(" ELSE ", unread)
	}
	b.Text(" END AS ", b.Quote(v.Field.DBName))
}

// makesKeys reports whether the database makes the key of a row of the upsert.
func (d *draft) makesKeys() bool {
	return int(d.built.proposed) > len(d.rows) || slices.ContainsFunc(d.rows, func(r Row) bool { return r.Key == nil })
}

func (d *draft) isKeyless(i int) bool { return d.rows[i].Key == nil }

// heedTold settles the children that may have been new, by what the statement says of their rows.
func (w *Write) heedTold(from []reflect.Value) {
	for i := range w.rows {
		r, row, v := &w.upsert.rows[i], &w.rows[i], &w.version
		if w.upsert.tells == byVersion || !r.unsure || !from[i].IsValid() {
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
	if u.tells != byVersion {
		return j.toldAnew(db, from)
	}
	anew, unclear := map[int]bool{}, false
	for i := range j.rows {
		r := u.rows[i]
		if !from[i].IsValid() || !u.mustExist(r) {
			continue
		}
		switch now := j.version.Read(from[i]); {
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

// toldAnew is storedAll for an upsert that says it. If a row has another key than its struct, and may be one whose key the database made, it is not
// known whether it was inserted.
func (j *judge) toldAnew(db *gorm.DB, from []reflect.Value) (map[int]bool, error) {
	anew, sent := map[int]bool{}, make([][]any, len(j.rows))
	for i := range j.rows {
		if row := &j.rows[i]; from[i].IsValid() && j.upsert.mustExist(j.upsert.rows[i]) {
			now := j.version.Read(from[i])
			anew[i] = j.version.IsUnread(now) || now.Null && !row.Expected.Null
			sent[i] = row.Key
		}
	}
	if !j.makesKeys() {
		return anew, nil
	}
	named, err := match.ByKey(db, j.model.Schema, sent, present(from))
	if err != nil {
		return nil, err
	}
	for i, key := range sent {
		anew[i] = anew[i] || key != nil && !named[i].IsValid()
	}
	return anew, nil
}

// wasKept reports whether a row that the upsert has updated is still at its old version. A row that may be new can have been inserted at that one. A
// child that is only linked stays at its version if it was linked before; its foreign key comes back with the row.
func (j *judge) wasKept(db *gorm.DB, i int, now column.Value) bool {
	u, v := j.upsert, &j.version
	return u.tells != byVersion && u.mustExist(u.rows[i]) && !u.links && !v.hasMoved(&j.rows[i], now) && !v.mayStay(db.Statement, &j.draft)
}

// isBump reports whether an upsert computes this version from the one that the struct holds.
func (j *judge) isBump(row *Row, now column.Value) bool {
	v := &j.version
	if v.IsTemporal() {
		return now.Equal(v.Stored(column.At(v.later.Time().Add(v.Tick))))
	}
	return !now.Null && now.N == max(row.Expected.N, v.Initial)+1
}

// changesInserts reports whether a trigger of MariaDB or MySQL may set the version of an inserted row.
func changesInserts(stmt *gorm.Statement) bool {
	return journal.Ask(stmt, "triggers", statement.NameInSQL(stmt), "SELECT EXISTS (SELECT 1 FROM information_schema.triggers "+
		"WHERE event_object_schema = DATABASE() AND event_object_table = ? AND action_timing = 'BEFORE' AND event_manipulation = 'INSERT')", stmt.Table)
}
