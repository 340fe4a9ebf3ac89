package gormlock

import (
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// VerifyVersion checks that the row of value, a pointer to a loaded struct, still is at its version, and locks it FOR
// SHARE, so that it stays there until the transaction of db ends: what was decided by reading it then holds. Else the
// error is [ErrStale]. Without a transaction there is nothing to hold the lock: [ErrNoTransaction]. Where the dialect
// has no row locks, as SQLite, the transaction itself is what keeps writers out.
func VerifyVersion(db *gorm.DB, value any) error {
	m, row, err := versionedStruct(db, value, "VerifyVersion")
	if err != nil {
		return err
	}
	if transactionOf(db.Statement) == nil {
		return fmt.Errorf("gormlock: VerifyVersion of %s: %w", m.schema.Table, ErrNoTransaction)
	}
	tx := db.Session(&gorm.Session{NewDB: true}).Model(value)
	stmt := tx.Statement
	if err := stmt.Parse(value); err != nil {
		return err
	}
	w := &versionWrite{model: m, op: "verify", checked: true, filtered: true}
	key, _ := keyOf(db.Statement, m.schema, row)
	if key == nil {
		return fmt.Errorf("gormlock: VerifyVersion: %s without a primary key: %w", m.schema.Name, gorm.ErrPrimaryKeyRequired)
	}
	r := &versionRow{row: row, key: key, name: keyName(key), expected: m.column.read(row)}
	if !m.column.loaded(r.expected) {
		return w.missing(stmt, key, nil)
	}
	found, err := w.lookWhere(tx, func(q *gorm.DB) *gorm.DB {
		return q.Clauses(w.keyIn([][]any{key}), clause.Locking{Strength: "SHARE"})
	})
	if err != nil {
		if sqlState(err) == "40001" {
			e := w.staleError(stmt, r)
			e.cause = err
			return e
		}
		return err
	}
	return w.why(tx, r, found)
}
