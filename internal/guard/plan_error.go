package guard

import (
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/statement"
)

func (p *plan) staleError(stmt *gorm.Statement, row *Row) *fault.Stale {
	e := &fault.Stale{Table: statement.TableName(stmt), Op: p.op.String(), PrimaryKey: map[string]any{}}
	expected := p.single[0].Expected
	if row != nil {
		p.named(stmt, row)
		expected = row.Expected
		for i, field := range p.model.Schema.PrimaryFields {
			e.PrimaryKey[field.DBName] = row.Key[i]
			e.Keys = append(e.Keys, field.DBName)
		}
	}
	if p.version.is() && p.version.checked && (row != nil || !p.batch) {
		e.Expected = p.version.Any(expected)
		e.Given = p.version.given
		if p.version.choice != nil {
			e.Expected = p.version.choice.String()
		}
	}
	return e
}

func (p *plan) stale(stmt *gorm.Statement, row *Row, actual any, deleted bool) *fault.Stale {
	e := p.staleError(stmt, row)
	e.Actual, e.Deleted = actual, deleted
	e.Own = p.isOwn(stmt, row)
	return e
}

// isOwn reports whether the transaction itself moved the row from the expected version, or deleted the row at that version. If a rival moved the
// row first, another attempt cures the conflict, whatever the transaction did to the row afterwards.
func (p *plan) isOwn(stmt *gorm.Statement, row *Row) bool {
	return row != nil && p.version.is() && p.version.checked && p.version.choice == nil && hasLeft(stmt, p.model, row.name, row.Expected, true)
}

func (p *plan) rowName(stmt *gorm.Statement, key []any) string {
	if key == nil { // of any row
		return statement.TableName(stmt)
	}
	values, columns := map[string]any{}, []string{}
	for i, field := range p.model.Schema.PrimaryFields {
		values[field.DBName] = key[i]
		columns = append(columns, field.DBName)
	}
	return fault.Row(statement.TableName(stmt), columns, values)
}

// missing is the error of a struct that was not read from its row.
func (p *plan) missing(stmt *gorm.Statement, key []any, actual any) error {
	at := ""
	if actual != nil {
		at = fmt.Sprintf(", the row is at %s", fault.Version(actual))
	}
	if v := p.model.Column; actual != nil && v.IsUnreadIn(actual) {
		cure := "move it on with IgnoreVersion"
		if v.IsInteger() && v.Unread().N > 0 {
			cure = "give it another version with SQL"
		}
		return fmt.Errorf("%w: %s: the row is at %s, which stands for a struct that was not read: %s, then read it",
			fault.ErrVersionMissing, p.rowName(stmt, key), fault.Version(actual), cure)
	}
	cure := "read it first"
	if journal.InTransaction(stmt) && journal.Of(stmt) == nil {
		cure = "gormlock does not see how this transaction ends, so a version that it has written itself is not kept: begin it with gormlock.Transaction"
	}
	return fmt.Errorf("%w: %s: %s was not read from its row%s: %s, or use ExpectVersion or IgnoreVersion",
		fault.ErrVersionMissing, p.rowName(stmt, key), p.model.Column.Field.Name, at, cure)
}

// missingRow is the error of a struct that was not read from its row, and whose row is gone.
func (p *plan) missingRow(stmt *gorm.Statement, key []any) error {
	return fmt.Errorf("%w: %s: %s was not read from its row, and the row is gone: use Create to store a new one",
		fault.ErrVersionMissing, p.rowName(stmt, key), p.model.Column.Field.Name)
}

// withoutKey is the error of an upsert of a struct that has the version of a row, but no key to identify the row.
func (p *plan) withoutKey() error {
	s, version := p.model.Schema, p.model.Column.Field.Name
	return fmt.Errorf("%w: %s: a struct that has a version and no key may find a row by another column, and would not be compared with it: read %s too, leave %s out of a new struct, or use IgnoreVersion",
		fault.ErrVersionMissing, s.Name, s.PrimaryFields[0].Name, version)
}

// conditionsOf is the error of a save whose row exists, but does not meet the caller's own conditions.
func (p *plan) conditionsOf(stmt *gorm.Statement, key []any) error {
	return fmt.Errorf("gormlock: %s: nothing was saved, the row does not meet the conditions of this Save: %w", p.rowName(stmt, key), gorm.ErrRecordNotFound)
}

// onlyRow returns the row of a statement about one row.
func (p *plan) onlyRow(stmt *gorm.Statement) *Row {
	if p.batch || p.memory.Count != 1 || p.op != OpCreate && p.op != OpUpsert && len(p.rows) == 0 {
		return nil
	}
	row := &Row{Struct: p.memory.Row(0)}
	if p.named(stmt, row).Key == nil {
		return nil
	}
	return row
}

func (p *plan) fencedError(stmt *gorm.Statement, row *Row, latest fence.Token) *fault.Fenced {
	e := &fault.Fenced{Table: statement.TableName(stmt), Op: p.op.String(), PrimaryKey: map[string]any{}, Token: p.fence.token, Latest: latest}
	if row == nil {
		return e
	}
	p.named(stmt, row)
	for i, field := range p.model.Schema.PrimaryFields {
		e.PrimaryKey[field.DBName] = row.Key[i]
		e.Keys = append(e.Keys, field.DBName)
	}
	return e
}

func joined(all []error) error {
	if len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}
