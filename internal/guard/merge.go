package guard

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// mergedRow is the row with which a struct was merged, and the columns of the struct that must be written.
type mergedRow struct {
	row  reflect.Value
	mine map[string]bool
}

// Merged limits an update of a merged struct to these columns, the times of the update, and what a hook changes. The
// rest of the row is already there, perhaps in a form that the struct cannot hold.
func Merged(row reflect.Value, mine map[string]bool) Clause {
	return Clause{change: func(i *Intent) { i.merged = &mergedRow{row, mine} }}
}

// onlyMerged leaves out of a SET what the row already has.
func (w *Write) onlyMerged(set clause.Set) clause.Set {
	if !w.intent.Merges() {
		return set
	}
	merged := w.intent.merged
	kept := make(clause.Set, 0, len(set))
	for _, assignment := range set {
		field := w.model.Schema.FieldsByDBName[assignment.Column.Name]
		if field == nil || merged.mine[field.DBName] || field.AutoUpdateTime > 0 || !holds(merged.row, field, w.rows[0].Struct) {
			kept = append(kept, assignment)
		}
	}
	return kept
}

// holds reports whether both structs hold the same in a field.
func holds(row reflect.Value, field *schema.Field, other reflect.Value) bool {
	a, b := statement.Place(field, row), statement.Place(field, other)
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// Compared says which of the three values of one column are equal to the server: that of base, that of mine, and that of the
// row, which may be NULL.
type Compared struct{ RowIsBase, RowIsMine, BaseIsMine, RowIsNull bool }

// Compare asks the server to compare these columns of the row with this key, as IfUnchanged does.
func Compare(db *gorm.DB, s *schema.Schema, key []any, columns []*schema.Field, base, mine reflect.Value) ([]Compared, error) {
	stmt := db.Session(&gorm.Session{NewDB: true, DryRun: true}).Model(reflect.New(s.ModelType).Interface()).Statement
	statement.SameTable(stmt, db.Statement)
	sql := statement.SQL{Statement: stmt}
	for i, field := range columns {
		sql.Text([]string{"SELECT ", ","}[min(i, 1)])
		c := newComparison(sql, "", field)
		c.compare(c.column, c.valueIn(base, false))
		sql.Text(",")
		c.compare(c.column, c.valueIn(mine, false))
		sql.Text(",")
		c.compare(c.valueIn(base, true), c.valueIn(mine, true))
		sql.Text(",(")
		sql.Column("", field.DBName)
		sql.Text(" IS NULL)")
	}
	sql.Text(" FROM ")
	sql.QuoteTo(stmt, statement.OwnTable)
	for i, field := range s.PrimaryFields {
		sql.Text([]string{" WHERE ", " AND "}[min(i, 1)])
		sql.Column("", field.DBName)
		sql.Text("=")
		sql.Expression(key[i])
	}
	sql.Text(dialect.Of(db).Current())
	answers := make([]Compared, len(columns))
	rows, err := db.Statement.ConnPool.QueryContext(db.Statement.Context, stmt.SQL.String(), stmt.Vars...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	into := make([]any, 0, 4*len(columns))
	for i := range answers {
		into = append(into, &answers[i].RowIsBase, &answers[i].RowIsMine, &answers[i].BaseIsMine, &answers[i].RowIsNull)
	}
	if rows.Next() {
		err = rows.Scan(into...)
	}
	if err == nil {
		err = rows.Err()
	}
	return answers, err
}

// Absent is the error of a save whose row was not found: that it is gone, or that the conditions of the call leave it out.
func Absent(db *gorm.DB, m *model.Model, row reflect.Value, key []any) error {
	w := savedRow(m, row, key)
	now, err := w.look(db, [][]any{key})
	if err != nil {
		return w.unlooked(db.Statement, &w.rows[0], err)
	}
	if now[0].isLive() {
		return w.conditionsOf(db.Statement, key)
	}
	e := w.stale(db.Statement, &w.rows[0], nil, true)
	e.Soft = now[0].deleted
	return e.Err()
}

// Changed is the error of a save whose row the server says was changed since the snapshot.
func Changed(db *gorm.DB, m *model.Model, row reflect.Value, key []any, cause error) error {
	w := savedRow(m, row, key)
	e := w.staleError(db.Statement, &w.rows[0])
	e.Cause = cause
	return e.Err()
}

// Overtaken is the error of a write if the server refuses to lock its rows: another transaction has changed one of them
// since the snapshot.
func Overtaken(db *gorm.DB, m *model.Model, op Op, keys [][]any, cause error) error {
	e := &fault.Stale{Table: m.Table, Op: op.String(), PrimaryKey: map[string]any{}, Cause: cause}
	if len(keys) == 1 {
		for i, field := range m.Schema.PrimaryFields {
			e.PrimaryKey[field.DBName] = keys[0][i]
			e.Keys = append(e.Keys, field.DBName)
		}
	}
	err := e.Err()
	install.Of(db).TellRefused(db.Statement.Context, err)
	return err
}

// savedRow is the save of one row that is not written.
func savedRow(m *model.Model, row reflect.Value, key []any) *Write {
	w := &Write{plan: plan{model: m, op: OpSave, version: versionGuard{Version: m.Column, checked: m.Column != nil}}}
	w.rows = w.single[:]
	w.rows[0] = Row{Struct: row, Key: key, name: statement.KeyName(key)}
	if m.Column != nil {
		w.rows[0].Expected = m.Column.Read(row)
	}
	return w
}
