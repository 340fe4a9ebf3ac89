package gormlock

import (
	"fmt"
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/fence"
)

// explainFence makes an error of the server what it is: a refusal, or a missing table of tokens.
func (w *versionWrite) explainFence(db *gorm.DB) bool {
	err := w.refusedByFence(db.Statement, db.Error)
	if err == nil {
		return false
	}
	db.Error = nil
	fail(db, err)
	return true
}

// refusedByFence is what an error of the server is where it is about the fence; nil for any other.
func (w *versionWrite) refusedByFence(stmt *gorm.Statement, said error) error {
	if !w.fence.guards() || said == nil {
		return nil
	}
	latest, refused := refusalIn(said, w.fence.token)
	if !refused {
		return fenceTableMissing(w.tableName(stmt), said)
	}
	e := w.fencedError(stmt, w.onlyRow(stmt), latest)
	e.cause = said
	if j := journalOf(stmt); j != nil {
		j.doom(e) // the server has given the transaction up
	}
	pluginOf(stmt.DB).tellRefused(stmt.Context, e)
	return e
}

// fenceTableMissing adds the cure to the error of a missing table of tokens; nil where err is another.
func fenceTableMissing(table string, err error) error {
	if sqlState(err) != "42P01" || !strings.Contains(err.Error(), fence.Table) {
		return nil
	}
	return fmt.Errorf("gormlock: %s: there is no table of tokens, fence.Migrate creates it: %w", table, err)
}

// onlyRow is the row that a statement is about, if it is one.
func (w *versionWrite) onlyRow(stmt *gorm.Statement) *versionRow {
	if w.batch || w.memory.count != 1 || w.op != opCreate && w.op != opUpsert && len(w.rows) == 0 {
		return nil
	}
	row := &versionRow{row: w.memory.row(0)}
	if w.named(stmt, row).key == nil {
		return nil
	}
	return row
}

func (w *versionWrite) fencedError(stmt *gorm.Statement, row *versionRow, latest fence.Token) *FencedError {
	e := &FencedError{Table: w.tableName(stmt), Op: w.op.String(), PrimaryKey: map[string]any{}, Token: w.fence.token, Latest: latest}
	if row == nil {
		return e
	}
	w.named(stmt, row)
	for i, field := range w.model.schema.PrimaryFields {
		e.PrimaryKey[field.DBName] = row.key[i]
		e.keys = append(e.keys, field.DBName)
	}
	return e
}

// whyFenced says by which token the row was refused, by what was found of it: nil where by none.
func (w *versionWrite) whyFenced(stmt *gorm.Statement, row *versionRow, current reflect.Value, live bool) error {
	f := w.fence
	switch {
	case !f.guards():
	case f.latest > f.token.Number:
		return w.fencedError(stmt, row, issued(f.token, f.latest))
	case live && f.read(current).n > f.token.Number:
		return w.fencedError(stmt, row, fence.Token{Number: f.read(current).n})
	}
	return nil
}

// whyFencedMany says whether a statement about many rows was refused, or passed over some: nil where it was not.
func (w *versionWrite) whyFencedMany(db *gorm.DB) error {
	f, stmt := w.fence, db.Statement
	where := func(q *gorm.DB) *gorm.DB { return q.Where("1=0") } // the latest token is asked for beside it
	if w.leavesOut(stmt) {
		own, _ := stmt.Clauses["WHERE"].Expression.(clause.Where)
		where = func(q *gorm.DB) *gorm.DB {
			later := clause.Gt{Column: clause.Column{Table: clause.CurrentTable, Name: f.field.DBName}, Value: f.token.Number}
			return q.Clauses(own).Where(later).Limit(1)
		}
	}
	found, err := w.lookWhere(db, where)
	if err != nil {
		return fmt.Errorf("gormlock: %s: rows that were written with a later token than %s are looked for: %w", w.tableName(stmt), f.token, err)
	}
	for _, current := range found {
		one := versionRow{}
		one.key, _ = keyOf(stmt, w.model.schema, current)
		return w.whyFenced(stmt, &one, current, true)
	}
	return w.whyFenced(stmt, nil, reflect.Value{}, false)
}

// besideLatest makes a query return, beside its rows, the latest token of the key: in one row where it has none.
func (f *fenceWrite) besideLatest(query string, vars []any) (string, []any) {
	own := fmt.Sprintf("SELECT token FROM %s WHERE space=$%d::smallint AND id=$%d::bigint", fence.Table, len(vars)+1, len(vars)+2)
	return "SELECT * FROM (SELECT (" + own + ") AS gormlock_latest) AS gormlock_tokens LEFT JOIN (" + query + ") AS gormlock_rows ON true",
		append(vars[:len(vars):len(vars)], f.token.Space, f.token.ID)
}

// readLatest takes the latest token from a row of besideLatest.
func (f *fenceWrite) readLatest(rows rowScanner) error {
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	var latest *int64
	into := make([]any, len(columns))
	for i := range into {
		into[i] = new(any)
	}
	into[0] = &latest
	if err := rows.Scan(into...); err != nil {
		return err
	}
	if latest != nil {
		f.latest = *latest
	}
	return nil
}

type rowScanner interface {
	Columns() ([]string, error)
	Scan(dest ...any) error
}
