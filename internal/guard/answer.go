package guard

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/match"
	"github.com/gormlock/gormlock/internal/statement"
)

// answer is a statement that was sent: its draft, and what the server says about its rows, in the answer and when it is asked again.
type answer struct{ draft }

// seen is a row as it is now. It is not valid if there is no row.
type seen struct {
	reflect.Value
	deleted bool // the row exists, but is soft-deleted
}

// isLive reports whether the row exists for queries that do not ask for deleted ones.
func (s seen) isLive() bool { return s.IsValid() && !s.deleted }

// look reads rows as they are now, each at the place of its key. It uses the connection that wrote, because a replica may lag behind.
func (a *answer) look(db *gorm.DB, keys [][]any) ([]seen, error) {
	all := make([]seen, len(keys))
	if err := a.lookFor(db, keys, all, db.Statement.Unscoped); err != nil {
		return nil, err
	}
	isGone := func(s seen) bool { return !s.IsValid() }
	if db.Statement.Unscoped || len(a.model.Schema.QueryClauses) == 0 || !slices.ContainsFunc(all, isGone) {
		return all, nil
	}
	return all, a.lookFor(db, keys, all, true)
}

// lookFor reads the rows that were not read yet, and also soft-deleted ones if unscoped is set.
func (a *answer) lookFor(db *gorm.DB, keys [][]any, all []seen, unscoped bool) error {
	rows, err := a.lookWhere(db, a.columnsToLookAt(), func(q *gorm.DB) *gorm.DB {
		if unscoped {
			q = q.Unscoped()
		}
		return q.Where(KeyIn(a.model.Schema, keys))
	})
	if err != nil {
		return err
	}
	found, err := match.ByKey(db, a.model.Schema, keys, rows)
	for i, row := range found {
		if row.IsValid() && !all[i].IsValid() {
			all[i] = seen{row, unscoped && !db.Statement.Unscoped}
		}
	}
	return err
}

// lookWhere reads columns of the rows that a query finds. If the snapshot would show their earlier state, it locks them, as the statement did.
func (a *answer) lookWhere(db *gorm.DB, columns []string, where func(*gorm.DB) *gorm.DB) ([]reflect.Value, error) {
	stmt := db.Statement
	q := db.Session(&gorm.Session{NewDB: true, DryRun: true, SkipHooks: true, Logger: logger.Discard})
	if stmt.Unscoped {
		q = q.Unscoped()
	}
	list := reflect.New(reflect.SliceOf(a.model.Schema.ModelType))
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
	latest := a.fence.guards() && statement.IsPostgres(db)
	if latest {
		query, vars = a.fence.besideLatest(query, vars)
	}
	rows, err := stmt.ConnPool.QueryContext(stmt.Context, query, vars...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var found []reflect.Value
	for rows.Next() {
		if latest {
			if err := a.fence.readLatest(rows); err != nil {
				return nil, err
			}
		}
		row := reflect.New(a.model.Schema.ModelType)
		if err := db.Session(&gorm.Session{NewDB: true}).ScanRows(rows, row.Interface()); err != nil {
			return nil, err
		}
		if key, _ := statement.KeyOf(stmt, a.model.Schema, row.Elem()); key != nil {
			found = append(found, row.Elem())
		}
	}
	return found, rows.Err()
}
