package pgtest

import (
	"context"
	"database/sql"
	"testing"

	"github.com/gormlock/gormlock/lockkey"
)

// Texts returns the first column of a query's result.
func Texts(t testing.TB, db *sql.DB, query string, args ...any) []string {
	t.Helper()
	found, err := texts(t.Context(), db, query, args...)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func texts(ctx context.Context, db *sql.DB, query string, args ...any) (found []string, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		found = append(found, text)
	}
	return found, rows.Err()
}

// OfKey is a query that calls a function of advisory locks, and its arguments.
func OfKey(function string, key lockkey.Key) (query string, args []any) {
	if id, ok := key.Int64(); ok {
		return "select " + function + "($1)", []any{id}
	}
	hi, lo, _ := key.Pair()
	return "select " + function + "($1, $2)", []any{hi, lo}
}
