package guard

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/whereabouts"
)

// Check compares the version of a row without writing it, for VerifyVersion.
type Check struct{ j *judge }

// NewCheck compares the row of this key with the version in its struct, or with the version that a clause names.
func NewCheck(stmt *gorm.Statement, m *model.Model, row reflect.Value, key []any, intent *asked.Intent) (Check, error) {
	whereabouts.ShowHidden(stmt)
	j := &judge{}
	j.model, j.op, j.version.Version, j.version.checked = m, OpVerify, m.Column, true
	j.where.filtered = true
	expected := j.version.Read(row)
	if intent != nil {
		var err error
		if expected, err = j.version.expect(intent); err != nil {
			return Check{}, err
		}
		j.version.given = true
	}
	j.rows = j.single[:]
	j.rows[0] = Row{Struct: row, Key: key, name: statement.KeyName(key), held: expected, Expected: expected}
	return Check{j}, nil
}

func (c Check) row() *Row { return &c.j.rows[0] }

// Missing returns the error of a struct that was not read from its row, or nil.
func (c Check) Missing(stmt *gorm.Statement) error {
	if c.j.version.choice != nil || c.j.version.Loaded(c.row().Expected) {
		return nil
	}
	return c.j.missing(stmt, c.row().Key, nil)
}

// Stale is the error of a row that, according to the server, was changed meanwhile.
func (c Check) Stale(stmt *gorm.Statement, cause error) error {
	e := c.j.staleError(stmt, c.row())
	e.Cause = cause
	return e.Err()
}

// IsKey is the condition that a row has the key of the checked row.
func (c Check) IsKey() clause.Expression { return KeyIn(c.j.model.Schema, [][]any{c.row().Key}) }

// Columns are the columns of the row that must be read, so that Why can judge it.
func (c Check) Columns() []string { return c.j.columnsToLookAt() }

// Why returns what is wrong with the locked row. found is invalid if there is no row.
func (c Check) Why(db *gorm.DB, found reflect.Value) error {
	if found.IsValid() {
		return c.j.why(db, c.row(), seen{Value: found})
	}
	now, err := c.j.look(db, [][]any{c.row().Key})
	if err != nil {
		return err
	}
	if now[0].isLive() && c.j.version.accepts(c.row(), c.j.version.Read(now[0].Value)) {
		return fmt.Errorf("gormlock: VerifyVersion: %s has the expected version and was not locked, because the conditions of the call exclude it: %w",
			c.j.rowName(db.Statement, c.row().Key), gorm.ErrRecordNotFound)
	}
	return c.j.why(db, c.row(), now[0])
}
