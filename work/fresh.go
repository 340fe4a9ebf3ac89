package work

import (
	"context"
	"database/sql"
	"errors"
	"reflect"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/journal"
)

// fresh is a pool whose statements are planned each time. pgx would prepare them, and a plan that was made while the table was small reads all of
// it. The server keeps such a plan until somebody analyzes the table. The statements sent here are about many jobs at once, so planning costs
// little. Results have the formats of prepared statements, because as text a float would depend on extra_float_digits, and a time on DateStyle.
type fresh struct {
	*journal.ConnPool
	pgx bool
}

// freshOver is the pool over that of a plugin.
func freshOver(ctx context.Context, pool *journal.ConnPool) (fresh, error) {
	config, err := configOf(ctx, pool.DB)
	switch {
	case errors.Is(err, errNoListen): // another driver
		return fresh{pool, false}, nil
	case err != nil:
		return fresh{}, err
	}
	mode := config.DefaultQueryExecMode
	return fresh{pool, mode == pgx.QueryExecModeCacheStatement || mode == pgx.QueryExecModeCacheDescribe}, nil
}

func (f fresh) args(args []any) []any {
	if !f.pgx {
		return args
	}
	return append([]any{pgx.QueryExecModeCacheDescribe}, args...)
}

// QueryContext overrides the method of the pool, as do the methods below.
func (f fresh) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return f.ConnPool.QueryContext(ctx, query, f.args(args)...)
}

func (f fresh) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return f.ConnPool.QueryRowContext(ctx, query, f.args(args)...)
}

// each reads all rows of a query into the same variables. It calls row for each of them, but only after the server has committed the statement: a
// deferred trigger may refuse it after its last row.
func (f fresh) each(ctx context.Context, query string, args, into []any, row func()) error {
	rows, err := f.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	var all [][]reflect.Value
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		one := make([]reflect.Value, len(into))
		for i, place := range into {
			one[i] = reflect.ValueOf(reflect.ValueOf(place).Elem().Interface())
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, one := range all {
		for i, place := range into {
			reflect.ValueOf(place).Elem().Set(one[i])
		}
		row()
	}
	return nil
}
