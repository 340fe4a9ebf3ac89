package gormlock

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

// look reads rows as they are now, on the connection that wrote: a replica may be behind.
func (w *versionWrite) look(db *gorm.DB, keys [][]any) (map[string]reflect.Value, error) {
	return w.lookWhere(db, func(q *gorm.DB) *gorm.DB { return q.Where(w.keyIn(keys)) })
}

func (w *versionWrite) keyIn(keys [][]any) clause.Expression {
	columns := make([]clause.Column, len(w.model.schema.PrimaryFields))
	for i, field := range w.model.schema.PrimaryFields {
		columns[i] = clause.Column{Table: clause.CurrentTable, Name: field.DBName}
	}
	values := make([]any, len(keys))
	for i, key := range keys {
		values[i] = key
		if len(columns) == 1 {
			values[i] = key[0]
		}
	}
	if len(columns) == 1 {
		return clause.IN{Column: columns[0], Values: values}
	}
	return clause.IN{Column: columns, Values: values}
}

func (w *versionWrite) lookWhere(db *gorm.DB, where func(*gorm.DB) *gorm.DB) (map[string]reflect.Value, error) {
	stmt := db.Statement
	q := db.Session(&gorm.Session{NewDB: true, DryRun: true, SkipHooks: true, Logger: logger.Discard})
	if stmt.Unscoped {
		q = q.Unscoped()
	}
	list := reflect.New(reflect.SliceOf(w.model.schema.ModelType))
	q = q.Model(list.Interface()).Select(w.keyAndVersion())
	sameTable(q.Statement, stmt)
	q = where(q).Find(list.Interface())
	if q.Error != nil {
		return nil, q.Error
	}
	query, vars := q.Statement.SQL.String(), q.Statement.Vars
	latest := w.fence.guards() && isPostgres(db)
	if latest {
		query, vars = w.fence.besideLatest(query, vars)
	}
	rows, err := stmt.ConnPool.QueryContext(stmt.Context, query, vars...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	found := map[string]reflect.Value{}
	for rows.Next() {
		if latest {
			if err := w.fence.readLatest(rows); err != nil {
				return nil, err
			}
		}
		row := reflect.New(w.model.schema.ModelType)
		if err := db.Session(&gorm.Session{NewDB: true}).ScanRows(rows, row.Interface()); err != nil {
			return nil, err
		}
		if key, _ := keyOf(stmt, w.model.schema, row.Elem()); key != nil {
			found[keyName(key)] = row.Elem()
		}
	}
	return found, rows.Err()
}

// keyAndVersion are the columns that tell which row it is and what became of it.
func (w *versionWrite) keyAndVersion() []string {
	columns := make([]string, 0, len(w.model.schema.PrimaryFields)+1)
	for _, field := range w.model.schema.PrimaryFields {
		columns = append(columns, field.DBName)
	}
	if w.model.column != nil {
		columns = append(columns, w.model.column.field.DBName)
	}
	if w.fence.guards() {
		columns = append(columns, w.fence.field.DBName)
	}
	return columns
}
