package gormlock

import (
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// notice keeps what a create is made by: Save of a slice and associations that are saved whole mean their structs as
// loaded rows, other upserts do not.
func (w *versionWrite) notice(stmt *gorm.Statement) {
	_, tracked := stmt.Settings.Load("gorm:update_track_time")
	_, child := stmt.Settings.Load("gorm:saved_association_map")
	w.upsert = &versionUpsert{strict: tracked, child: child}
}

// checkVersionsBeforeCreate settles what a create does to versions that are there already, if it has a conflict clause.
func checkVersionsBeforeCreate(db *gorm.DB) {
	w := versionWriteOf(db.Statement)
	if w == nil || db.Error != nil {
		return
	}
	if err := w.prepareCreate(db.Statement); err != nil {
		w.refuse(db, err)
		return
	}
	w.arm(db.Statement)
}

func (w *versionWrite) prepareCreate(stmt *gorm.Statement) error {
	column := w.model.column
	if w.intent != nil && (w.intent.expects || w.intent.unchanged != nil) {
		return fmt.Errorf("gormlock: %s: a create finds no version to compare: ExpectVersion and IfUnchanged are for updates and deletes", w.model.schema.Name)
	}
	if column == nil {
		if w.upsert = nil; hasUpsert(stmt) {
			w.op = opUpsert
		}
		return nil
	}
	if hasUpsert(stmt) || doesNothing(stmt) && w.upsert.child {
		w.op = opUpsert
		if err := w.prepareUpsert(stmt); err != nil || !w.upsert.skips || w.checked {
			return err
		}
		w.op, w.rows = opCreate, nil
	}
	w.upsert = nil
	w.wantGiven(stmt)
	return nil
}

// wantGiven asks a plain INSERT for the version as the server stored it: a time at the column's precision, or xmin.
func (w *versionWrite) wantGiven(stmt *gorm.Statement) {
	column := w.model.column
	if column.kind == integerVersion || w.memory.count == 0 || doesNothing(stmt) || w.intent.ignores() ||
		!slices.Contains(stmt.BuildClauses, "RETURNING") {
		return
	}
	asked, byUser := stmt.Clauses["RETURNING"]
	returning, _ := asked.Expression.(clause.Returning)
	columns := slices.Clone(returning.Columns)
	fields := stmt.Schema.FieldsWithDefaultDBValue
	if byUser && len(columns) == 0 {
		fields = stmt.Schema.Fields
	}
	for _, field := range fields {
		if len(returning.Columns) == 0 && field.DBName != "" && field.Readable && field != column.field {
			columns = append(columns, clause.Column{Name: field.DBName})
		}
	}
	columns = append(columns, clause.Column{Name: column.field.DBName})
	r := &versionReturning{}
	w.returning = r
	r.had, r.hadAny, r.installed, r.byPosition = asked, byUser, true, true
	stmt.Clauses["RETURNING"] = clause.Clause{Name: "RETURNING", Expression: clause.Returning{Columns: columns}}
}

func doesNothing(stmt *gorm.Statement) bool {
	conflict, ok := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	return ok && conflict.DoNothing
}

// buildValues gives every new row its first version: also where the column was left out by Select or Omit, or by a
// map.
func (w *versionWrite) buildValues(c clause.Clause, stmt *gorm.Statement) bool {
	values, ok := c.Expression.(clause.Values)
	versions := w.model.column != nil && w.model.column.kind != systemVersion
	if !ok || !versions && w.fence == nil {
		return false
	}
	w.built = true
	if versions {
		w.versionValues(&values, stmt)
	}
	if w.fence != nil {
		w.fenceValues(&values)
	}
	c.Expression = values
	c.Build(stmt)
	return true
}

func (w *versionWrite) versionValues(values *clause.Values, stmt *gorm.Statement) {
	column := w.model.column
	name := column.field.DBName
	initial := column.first(stmt.NowFunc())
	first := column.any(initial)
	if len(w.rows) == 0 {
		w.single[0].next = initial
	}
	at := slices.IndexFunc(values.Columns, func(c clause.Column) bool { return c.Name == name })
	left := at < 0
	if left {
		at = len(values.Columns)
		values.Columns = append(values.Columns, clause.Column{Name: name})
		for i := range values.Values {
			values.Values[i] = append(values.Values[i], nil)
		}
		if len(values.Values) == 0 {
			values.Values = [][]any{{nil}}
		}
	}
	for i := range values.Values {
		cell := &values.Values[i][at]
		if n, ok := (*cell).(int64); ok && n > 0 && len(w.rows) == 0 {
			continue
		}
		switch {
		case i < len(w.rows):
			*cell = column.any(w.rows[i].next)
		case i < w.memory.count:
			v := column.read(w.memory.row(i))
			switch {
			case column.unset(v):
				*cell = first
			case v.n < 0:
				fail(stmt.DB, fmt.Errorf("gormlock: %s: version %d of a new row is negative", stmt.Table, v.n))
			case left:
				*cell = column.any(v)
			}
		case w.unsetValue(*cell):
			*cell = first
		}
	}
}

// unsetValue tells whether a map gives no version.
func (w *versionWrite) unsetValue(value any) bool {
	if value == nil || reflect.ValueOf(value).IsZero() {
		return true
	}
	if _, ok := value.(clause.Expression); ok {
		return false
	}
	v, err := w.model.column.of(value)
	return err == nil && w.model.column.unset(v)
}

// checkVersionsAfterCreate brings first versions into memory, and settles an upsert.
func checkVersionsAfterCreate(db *gorm.DB) {
	w := versionWriteOf(db.Statement)
	if w == nil {
		return
	}
	w.returning.collect(db.Statement)
	switch {
	case db.Error != nil:
		if !w.explainFence(db) && w.upsert != nil {
			w.serializationFailure(db)
		}
	case db.DryRun || w.model.column == nil && w.fence == nil:
		w.done = true
	case w.upsert != nil:
		w.settleUpsert(db)
	default:
		w.settleCreate(db)
	}
}

// settleCreate gives the structs that were stored their version. Of rows that ON CONFLICT DO NOTHING may have skipped,
// those were stored that have a key now and had none.
func (w *versionWrite) settleCreate(db *gorm.DB) {
	column, stmt := w.model.column, db.Statement
	if w.fence.guards() {
		if err := w.whyFencedUpsert(db); err != nil {
			w.refuse(db, err)
			return
		}
		w.followCreated(db)
	}
	defer w.keepWritten(stmt)
	if column == nil || column.kind == systemVersion || w.returning != nil && w.returning.byPosition {
		return
	}
	all := !doesNothing(stmt) || int(db.RowsAffected) == w.memory.count && (!w.batch || len(stmt.Schema.FieldsWithDefaultDBValue) == 0)
	for i := range w.memory.count {
		row := w.memory.row(i)
		switch {
		case !row.CanAddr():
		case !all && !w.gotKey(stmt, i):
			if was := w.memory.was(i); column.unset(column.read(was)) {
				column.write(row, column.read(was))
			}
		case column.unset(column.read(row)):
			column.write(row, w.single[0].next)
		}
	}
}

// gotKey tells whether the statement gave the struct its key.
func (w *versionWrite) gotKey(stmt *gorm.Statement, i int) bool {
	_, had := keyOf(stmt, w.model.schema, w.memory.was(i))
	_, has := keyOf(stmt, w.model.schema, w.memory.row(i))
	return has && !had
}
