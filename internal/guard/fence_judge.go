package guard

import (
	"fmt"
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/statement"
)

// explainFence turns an error of the server into a refusal, or into the error of a missing table of tokens.
func (j *judge) explainFence(db *gorm.DB) bool {
	err := j.RefusedByFence(db.Statement, db.Error)
	if err == nil {
		return false
	}
	db.Error = nil
	fault.Add(db, err)
	return true
}

// RefusedByFence says what an error of the server means if it is about the fence. It returns nil for other errors.
func (j *judge) RefusedByFence(stmt *gorm.Statement, said error) error {
	if !j.fence.guards() || said == nil {
		return nil
	}
	latest, isRefusal := refusalIn(said, j.fence.token)
	if !isRefusal {
		return fenceTableMissing(statement.TableName(stmt), said)
	}
	e := j.fencedError(stmt, j.onlyRow(stmt), latest)
	e.Cause = said
	refused := e.Err()
	if past := journal.Of(stmt); past != nil {
		past.Doom(refused) // the server has aborted the transaction
	}
	install.Of(stmt.DB).TellRefused(stmt.Context, refused)
	return refused
}

// fenceTableMissing adds the cure to the error of a missing table of tokens. It returns nil if err is another error.
func fenceTableMissing(table string, err error) error {
	if sqlstate.Of(err) != sqlstate.UndefinedTable || !strings.Contains(err.Error(), fence.Table) {
		return nil
	}
	return fmt.Errorf("gormlock: %s: the table of tokens does not exist, fence.Migrate creates it: %w", table, err)
}

// why returns which token refused the row. Without a row, the error names only the token.
func (f *FenceGuard) why(j *judge, stmt *gorm.Statement, row *Row, current reflect.Value) error {
	switch {
	case f.latest > f.token.Number:
		return j.fencedError(stmt, row, Issued(f.token, f.latest)).Err()
	case current.IsValid() && f.Read(current).N > f.token.Number:
		return j.fencedError(stmt, row, fence.Token{Number: f.Read(current).N}).Err()
	}
	return nil
}

// whyFencedMany returns why a statement about many rows was refused or skipped some, or nil.
func (j *judge) whyFencedMany(db *gorm.DB) error {
	f, stmt := j.fence, db.Statement
	where := func(q *gorm.DB) *gorm.DB { return q.Where("1=0") } // the latest token is read beside it
	if j.leavesOut(stmt) {
		own, _ := stmt.Clauses["WHERE"].Expression.(clause.Where)
		where = func(q *gorm.DB) *gorm.DB {
			later := clause.Gt{Column: clause.Column{Table: clause.CurrentTable, Name: f.Field.DBName}, Value: f.token.Number}
			return q.Clauses(clause.Where{Exprs: beside(later, own.Exprs)}).Limit(1)
		}
	}
	return j.whyFencedAmong(db, where)
}

// whyFencedAmong looks for rows that were written with a later token.
func (j *judge) whyFencedAmong(db *gorm.DB, where func(*gorm.DB) *gorm.DB) error {
	stmt := db.Statement
	found, err := j.lookWhere(db, j.columnsToLookAt(), where)
	if err != nil {
		return fmt.Errorf("gormlock: %s: look for rows written with a later token than %s: %w", statement.TableName(stmt), j.fence.token, err)
	}
	for _, current := range found {
		one := Row{}
		one.Key, _ = statement.KeyOf(stmt, j.model.Schema, current)
		if err := j.fence.why(j, stmt, &one, current); err != nil {
			return err
		}
	}
	return j.fence.why(j, stmt, nil, reflect.Value{})
}

// besideLatest makes a query return the latest token of the key with each row. If the query finds no rows, it returns one row with the token.
func (f *FenceGuard) besideLatest(query string, vars []any) (string, []any) {
	own := fmt.Sprintf("SELECT token FROM %s WHERE space=$%d::smallint AND id=$%d::bigint", fence.Table, len(vars)+1, len(vars)+2)
	return "SELECT * FROM (SELECT (" + own + ") AS gormlock_latest) AS gormlock_tokens LEFT JOIN (" + query + ") AS gormlock_rows ON true",
		append(vars[:len(vars):len(vars)], f.token.Space, f.token.ID)
}

// readLatest takes the latest token from a row of besideLatest.
func (f *FenceGuard) readLatest(rows interface {
	Columns() ([]string, error)
	Scan(dest ...any) error
},
) error {
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

// whyFencedUpsert returns which row an upsert skipped because of a later token. It returns nil if it skipped none, or only because of the caller's
// conditions.
func (j *judge) whyFencedUpsert(db *gorm.DB) error {
	f, stmt := j.fence, db.Statement
	if !f.guards() || !statement.HasUpsert(stmt) || int(db.RowsAffected) >= f.proposed {
		return nil
	}
	if err := j.whyFencedConflicting(db); err != nil {
		return err
	}
	conflict, _ := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	if len(conflict.Where.Exprs) > 0 || j.compares() || j.upsert.onlyInserts() {
		return nil
	}
	e := j.fencedError(stmt, j.onlyRow(stmt), f.token)
	e.Passed = true
	return e.Err()
}

// whyFencedConflicting returns which of the rows that an upsert met has a later token, or nil.
func (j *judge) whyFencedConflicting(db *gorm.DB) error {
	fields := j.conflictFields(db.Statement)
	if !j.fence.guards() || len(fields) == 0 || j.memory.Count == 0 {
		return nil
	}
	columns, values := j.conflicting(db.Statement, fields)
	return j.whyFencedAmong(db, func(q *gorm.DB) *gorm.DB { return q.Where(clause.IN{Column: columns, Values: values}) })
}
