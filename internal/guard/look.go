package guard

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/statement"
)

// seen is a row as it is now. It is not valid if there is no row.
type seen struct {
	reflect.Value
	deleted bool // it is there, soft-deleted
}

// isLive reports whether the row exists for queries that do not ask for deleted ones.
func (s seen) isLive() bool { return s.IsValid() && !s.deleted }

// look reads rows as they are now, each at the place of its key. It uses the connection that wrote, because a replica may
// lag behind.
func (w *Write) look(db *gorm.DB, keys [][]any) ([]seen, error) {
	all := make([]seen, len(keys))
	if err := w.lookFor(db, keys, all, db.Statement.Unscoped); err != nil {
		return nil, err
	}
	isGone := func(s seen) bool { return !s.IsValid() }
	if db.Statement.Unscoped || len(w.model.Schema.QueryClauses) == 0 || !slices.ContainsFunc(all, isGone) {
		return all, nil
	}
	return all, w.lookFor(db, keys, all, true)
}

// lookFor reads the rows that were not read yet, soft-deleted ones too if asked to.
func (w *Write) lookFor(db *gorm.DB, keys [][]any, all []seen, unscoped bool) error {
	rows, err := w.lookWhere(db, w.columnsToLookAt(), func(q *gorm.DB) *gorm.DB {
		if unscoped {
			q = q.Unscoped()
		}
		return q.Where(KeyIn(w.model.Schema, keys))
	})
	if err != nil {
		return err
	}
	found, err := w.match(db, keys, rows)
	for i, row := range found {
		if row.IsValid() && !all[i].IsValid() {
			all[i] = seen{row, unscoped && !db.Statement.Unscoped}
		}
	}
	return err
}

// lookWhere reads columns of the rows that a query finds. If the snapshot would show them as they were before, it locks
// them, as the statement did.
func (w *Write) lookWhere(db *gorm.DB, columns []string, where func(*gorm.DB) *gorm.DB) ([]reflect.Value, error) {
	stmt := db.Statement
	q := db.Session(&gorm.Session{NewDB: true, DryRun: true, SkipHooks: true, Logger: logger.Discard})
	if stmt.Unscoped {
		q = q.Unscoped()
	}
	list := reflect.New(reflect.SliceOf(w.model.Schema.ModelType))
	q = q.Model(list.Interface()).Select(columns)
	if dialect.Of(db).IsMySQL() && statement.Transaction(stmt) != nil {
		q = q.Clauses(clause.Locking{Strength: clause.LockingStrengthShare})
	}
	statement.SameTable(q.Statement, stmt)
	q = where(q).Find(list.Interface())
	if q.Error != nil {
		return nil, q.Error
	}
	query, vars := q.Statement.SQL.String(), q.Statement.Vars
	latest := w.fence.guards() && statement.IsPostgres(db)
	if latest {
		query, vars = w.fence.besideLatest(query, vars)
	}
	rows, err := stmt.ConnPool.QueryContext(stmt.Context, query, vars...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var found []reflect.Value
	for rows.Next() {
		if latest {
			if err := w.fence.readLatest(rows); err != nil {
				return nil, err
			}
		}
		row := reflect.New(w.model.Schema.ModelType)
		if err := db.Session(&gorm.Session{NewDB: true}).ScanRows(rows, row.Interface()); err != nil {
			return nil, err
		}
		if key, _ := statement.KeyOf(stmt, w.model.Schema, row.Elem()); key != nil {
			found = append(found, row.Elem())
		}
	}
	return found, rows.Err()
}

// columnsToLookAt are the columns that identify the row and show its state.
func (p *plan) columnsToLookAt() []string {
	columns := make([]string, 0, len(p.model.Schema.PrimaryFields)+1)
	for _, field := range p.model.Schema.PrimaryFields {
		columns = append(columns, field.DBName)
	}
	if p.version.is() {
		columns = append(columns, p.version.Field.DBName)
	}
	if p.fence.guards() {
		columns = append(columns, p.fence.Field.DBName)
	}
	return columns
}
