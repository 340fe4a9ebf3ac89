package gormlock

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// VerifyVersion checks that the row of value, a pointer to a loaded struct, still is at its version, and locks it, so that
// it stays there until the transaction of db ends: what was decided by reading it then holds. Else the error is [ErrStale].
// The lock is FOR SHARE, or the row lock on db, which may [Try] or have a [Timeout]. Without a transaction there is nothing
// to hold it: [ErrNoTransaction]. Where the dialect has no row locks, as SQLite, the transaction itself is what keeps
// writers out. Scopes, locks and [ExpectVersion] on db hold for it; conditions that leave the row out are an error.
func VerifyVersion(db *gorm.DB, value any) error {
	m, row, err := versionedStruct(db, value, "VerifyVersion")
	if err != nil {
		return err
	}
	err = verifyVersion(beside(db).Session(&gorm.Session{}), m, row, value)
	pluginOf(db).tellRefused(db.Statement.Context, err)
	return err
}

func verifyVersion(db *gorm.DB, m *versionedModel, row reflect.Value, value any) error {
	if transactionOf(db.Statement) == nil {
		return fmt.Errorf("gormlock: VerifyVersion of %s: %w", m.schema.Table, because(ErrNoTransaction))
	}
	expected := m.column.read(row)
	if intent := versionIntentOf(db.Statement); intent != nil {
		if !intent.expects || intent.ignore || intent.unchanged != nil {
			return fmt.Errorf("gormlock: VerifyVersion: %s: of the clauses about versions only ExpectVersion goes with it", m.schema.Name)
		}
		var err error
		if expected, err = m.column.of(intent.expected); err != nil {
			return err
		}
	}
	tx := db.Session(&gorm.Session{NewDB: true}).Model(value)
	stmt := tx.Statement
	if err := stmt.Parse(value); err != nil {
		return err
	}
	if db.Statement.Table != "" {
		sameTable(stmt, db.Statement)
	}
	stmt.Unscoped = db.Statement.Unscoped
	w := &versionWrite{model: m, op: opVerify, checked: true, filtered: true}
	key, _ := keyOf(db.Statement, m.schema, row)
	if key == nil {
		return fmt.Errorf("gormlock: VerifyVersion: %s without a primary key: %w", m.schema.Name, gorm.ErrPrimaryKeyRequired)
	}
	r := &versionRow{row: row, key: key, name: keyName(key), expected: expected}
	if !m.column.loaded(r.expected) {
		return w.missing(stmt, key, nil)
	}
	found, err := w.shareLock(db, key)
	if err != nil {
		if sqlState(err) == "40001" {
			e := w.staleError(stmt, r)
			e.cause = err
			return e
		}
		return err
	}
	if len(found) == 0 { // gone, or not what the conditions of the call let through
		if found, err = w.look(tx, [][]any{key}); err != nil {
			return err
		}
		if now, there := found[r.name]; there && m.column.read(now).equal(expected) {
			return fmt.Errorf("gormlock: VerifyVersion: %s is at its version and was not locked, for the conditions of the call leave it out: %w",
				w.rowName(stmt, key), gorm.ErrRecordNotFound)
		}
	}
	return w.why(tx, r, found)
}

// shareLock reads the row under its lock, with all that the call asks for besides: scopes, locks, conditions.
func (w *versionWrite) shareLock(db *gorm.DB, key []any) (map[string]reflect.Value, error) {
	rows := reflect.New(reflect.SliceOf(w.model.schema.ModelType))
	query := db.Session(&gorm.Session{SkipHooks: true}).Model(rows.Interface()).Select(w.keyAndVersion())
	settleMarks(query.Statement) // with what is looked at here
	delete(query.Statement.Clauses, versionIntentClause)
	query = query.Scopes(narrowed(w.keyIn([][]any{key})), lastScope(w.keepWritersOut)).Find(rows.Interface())
	found := map[string]reflect.Value{}
	for i := range rows.Elem().Len() {
		row := rows.Elem().Index(i)
		if key, _ := keyOf(db.Statement, w.model.schema, row); key != nil {
			found[keyName(key)] = row
		}
	}
	return found, query.Error
}

// keepWritersOut gives a query the lock FOR SHARE, unless the call or a scope of it has given it one that does as much.
func (w *versionWrite) keepWritersOut(db *gorm.DB) {
	stmt, table := db.Statement, w.model.schema.Table
	if stmt.Clauses["FOR"].Expression == nil {
		stmt.AddClause(clause.Locking{Strength: "SHARE"})
		return
	}
	own := &gorm.Statement{DB: db} // the scopes run before GORM gives the query the table of its model
	if err := own.Parse(stmt.Model); err != nil {
		fail(db, err)
		return
	}
	if stmt.Table != "" {
		sameTable(own, stmt)
	}
	if err := refuseWeakLock(stmt, ownName(own)); err != nil {
		fail(db, fmt.Errorf("gormlock: VerifyVersion of %s: %w", table, because(err)))
	}
}

// refuseWeakLock refuses a row lock that would let a row be changed of the table, which is called so in the query.
func refuseWeakLock(stmt *gorm.Statement, table string) error {
	var strength, options string
	var of []string
	switch l := stmt.Clauses["FOR"].Expression.(type) {
	case RowLockClause:
		if l.err != nil {
			return l.err
		}
		strength, of = l.strength.sql(), l.of
		if l.skip {
			options = "SKIP LOCKED"
		}
	case clause.Locking:
		strength, options = l.Strength, l.Options
		if l.Table.Name != "" && l.Table.Name != clause.CurrentTable {
			of = []string{l.Table.Name}
		}
	default:
		return fmt.Errorf("%w: %T is a row lock that nobody here knows: take RowLock or clause.Locking", ErrOption, l)
	}
	if strings.EqualFold(strength, "KEY SHARE") || strings.EqualFold(options, "SKIP LOCKED") || len(of) > 0 && !slices.Contains(of, table) {
		return fmt.Errorf("%w: its row lock lets the row be changed: FOR SHARE or more, without Skip, and Of this table", ErrOption)
	}
	return nil
}
