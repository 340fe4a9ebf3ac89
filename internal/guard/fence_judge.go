package guard

import (
	"fmt"
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/statement"
)

// explainFence turns an error of the server into a refusal, or into the error of a missing table of tokens.
func (w *Write) explainFence(db *gorm.DB) bool {
	err := w.RefusedByFence(db.Statement, db.Error)
	if err == nil {
		return false
	}
	db.Error = nil
	fault.Add(db, err)
	return true
}

// RefusedByFence is what an error of the server means, if it is about the fence; nil for any other.
func (w *Write) RefusedByFence(stmt *gorm.Statement, said error) error {
	if !w.fence.guards() || said == nil {
		return nil
	}
	latest, isRefusal := refusalIn(said, w.fence.token)
	if !isRefusal {
		return fenceTableMissing(statement.TableName(stmt), said)
	}
	e := w.fencedError(stmt, w.onlyRow(stmt), latest)
	e.Cause = said
	refused := e.Err()
	if j := journal.Of(stmt); j != nil {
		j.Doom(refused) // the server has aborted the transaction
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

// onlyRow returns the row of a statement about one row.
func (w *Write) onlyRow(stmt *gorm.Statement) *Row {
	if w.batch || w.memory.Count != 1 || w.op != OpCreate && w.op != OpUpsert && len(w.rows) == 0 {
		return nil
	}
	row := &Row{Struct: w.memory.Row(0)}
	if w.named(stmt, row).Key == nil {
		return nil
	}
	return row
}

func (w *Write) fencedError(stmt *gorm.Statement, row *Row, latest fence.Token) *fault.Fenced {
	e := &fault.Fenced{Table: statement.TableName(stmt), Op: w.op.String(), PrimaryKey: map[string]any{}, Token: w.fence.token, Latest: latest}
	if row == nil {
		return e
	}
	w.named(stmt, row)
	for i, field := range w.model.Schema.PrimaryFields {
		e.PrimaryKey[field.DBName] = row.Key[i]
		e.Keys = append(e.Keys, field.DBName)
	}
	return e
}

// why returns by which token the row was refused. Without a row, the error names only the token.
func (f *FenceGuard) why(w *Write, stmt *gorm.Statement, row *Row, current reflect.Value) error {
	switch {
	case f.latest > f.token.Number:
		return w.fencedError(stmt, row, Issued(f.token, f.latest)).Err()
	case current.IsValid() && f.Read(current).N > f.token.Number:
		return w.fencedError(stmt, row, fence.Token{Number: f.Read(current).N}).Err()
	}
	return nil
}

// whyFencedMany returns why a statement about many rows was refused or skipped some of them, or nil.
func (w *Write) whyFencedMany(db *gorm.DB) error {
	f, stmt := w.fence, db.Statement
	where := func(q *gorm.DB) *gorm.DB { return q.Where("1=0") } // the latest token is asked for beside it
	if w.leavesOut(stmt) {
		own, _ := stmt.Clauses["WHERE"].Expression.(clause.Where)
		where = func(q *gorm.DB) *gorm.DB {
			later := clause.Gt{Column: clause.Column{Table: clause.CurrentTable, Name: f.Field.DBName}, Value: f.token.Number}
			return q.Clauses(own).Where(later).Limit(1)
		}
	}
	return w.whyFencedAmong(db, where)
}

// whyFencedAmong looks for rows that were written with a later token.
func (w *Write) whyFencedAmong(db *gorm.DB, where func(*gorm.DB) *gorm.DB) error {
	stmt := db.Statement
	found, err := w.lookWhere(db, w.columnsToLookAt(), where)
	if err != nil {
		return fmt.Errorf("gormlock: %s: look for rows written with a later token than %s: %w", statement.TableName(stmt), w.fence.token, err)
	}
	for _, current := range found {
		one := Row{}
		one.Key, _ = statement.KeyOf(stmt, w.model.Schema, current)
		if err := w.fence.why(w, stmt, &one, current); err != nil {
			return err
		}
	}
	return w.fence.why(w, stmt, nil, reflect.Value{})
}

// besideLatest makes a query return the latest token of the key with each row. If the query has no rows, it returns one
// row with the token.
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

// whyFencedUpsert returns which row an upsert skipped because of a later token. It returns nil if it skipped none, or
// only because of conditions of the caller.
func (w *Write) whyFencedUpsert(db *gorm.DB) error {
	f, stmt := w.fence, db.Statement
	if !f.guards() || !statement.HasUpsert(stmt) || int(db.RowsAffected) >= f.proposed {
		return nil
	}
	if err := w.whyFencedConflicting(db); err != nil {
		return err
	}
	conflict, _ := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	if len(conflict.Where.Exprs) > 0 || w.compares() {
		return nil
	}
	e := w.fencedError(stmt, w.onlyRow(stmt), f.token)
	e.Passed = true
	return e.Err()
}

// whyFencedConflicting returns which of the rows that an upsert met has a later token, or nil.
func (w *Write) whyFencedConflicting(db *gorm.DB) error {
	fields := w.conflictFields(db.Statement)
	if !w.fence.guards() || len(fields) == 0 || w.memory.Count == 0 {
		return nil
	}
	columns, values := w.conflicting(db.Statement, fields)
	return w.whyFencedAmong(db, func(q *gorm.DB) *gorm.DB { return q.Where(clause.IN{Column: columns, Values: values}) })
}

// conflictFields are the columns by which an upsert finds rows. There are none if they are not columns of the model.
func (w *Write) conflictFields(stmt *gorm.Statement) []*schema.Field {
	conflict, _ := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	var fields []*schema.Field
	for _, column := range conflict.Columns {
		field := w.model.Schema.LookUpField(column.Name)
		if field == nil {
			return nil
		}
		fields = append(fields, field)
	}
	if len(fields) == 0 {
		return w.model.Schema.PrimaryFields
	}
	return fields
}

// conflicting is by what the rows of an upsert are found: columns, and for each row their values.
func (w *Write) conflicting(stmt *gorm.Statement, fields []*schema.Field) (columns any, values []any) {
	names := make([]clause.Column, len(fields))
	for i, field := range fields {
		names[i] = clause.Column{Table: clause.CurrentTable, Name: field.DBName}
	}
	for i := range w.memory.Count {
		in := valuesIn(stmt, fields, w.structBefore(i))
		if len(fields) == 1 {
			values = append(values, in[0])
		} else {
			values = append(values, in)
		}
	}
	if len(fields) == 1 {
		return names[0], values
	}
	return names, values
}

// valuesIn are the values of the fields in row.
func valuesIn(stmt *gorm.Statement, fields []*schema.Field, row reflect.Value) []any {
	values := make([]any, len(fields))
	for i, field := range fields {
		values[i], _ = field.ValueOf(stmt.Context, row)
	}
	return values
}

// followCreated gives the structs that a create stored their token. If the create may have skipped rows, the stored
// structs are those that have a key now and had none before.
func (w *Write) followCreated(db *gorm.DB) {
	f, stmt := w.fence, db.Statement
	if !f.guards() {
		return
	}
	skips := statement.DoesNothing(stmt) && w.batch && len(stmt.Schema.FieldsWithDefaultDBValue) > 0
	all := int(db.RowsAffected) >= f.proposed && !skips
	for i := range w.memory.Count {
		if all || w.gotKey(stmt, i) {
			f.follow(w.memory.Row(i))
		}
	}
}

// gotKey reports whether the statement gave the struct its key.
func (w *Write) gotKey(stmt *gorm.Statement, i int) bool {
	_, had := statement.KeyOf(stmt, w.model.Schema, w.memory.Was(i))
	_, has := statement.KeyOf(stmt, w.model.Schema, w.memory.Row(i))
	return has && !had
}
