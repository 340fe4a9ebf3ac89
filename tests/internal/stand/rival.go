package stand

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgtest"
)

// RowRival is a session that looks for locked rows, or locks some.
type RowRival struct {
	t    testing.TB
	Conn *pgx.Conn // to ask something else
}

// NewRowRival opens a session in the schema of the test.
func NewRowRival(t testing.TB) RowRival {
	t.Helper()
	return RowRival{t, pgtest.Conn(t, pgtest.Schema())}
}

// Locked are the ids of the table's rows that somebody else has locked as strongly as FOR NO KEY UPDATE.
func (r RowRival) Locked(table string) []int64 { return r.LockedAgainst(table, "FOR NO KEY UPDATE") }

// LockedAgainst is Locked for a strength.
func (r RowRival) LockedAgainst(table, strength string) []int64 {
	r.t.Helper()
	return LockedRows[int64](r, table, "id", strength)
}

// LockedKeys are the rows by an expression of text.
func (r RowRival) LockedKeys(table, key string) []string {
	r.t.Helper()
	return LockedRows[string](r, table, key, "FOR NO KEY UPDATE")
}

// LockedRows are the rows, by key, that somebody else has locked against the strength.
func LockedRows[K any](r RowRival, table, key, strength string) []K {
	r.t.Helper()
	rows, err := r.Conn.Query(context.Background(), "select "+key+" from "+table+" where ctid not in (select ctid from "+table+" "+strength+" skip locked) order by 1")
	if err != nil {
		r.t.Fatal(err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[K])
	if err != nil {
		r.t.Fatal(err)
	}
	return keys
}

// Hold locks rows until the returned function is called. The end of the test calls it too.
func (r RowRival) Hold(query string, args ...any) (release func()) {
	r.t.Helper()
	ctx := context.Background()
	tx, err := r.Conn.Begin(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, query, args...); err != nil {
		r.t.Fatal(err)
	}
	release = func() {
		if err := tx.Rollback(ctx); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
			r.t.Errorf("end the rival: %v", err)
		}
	}
	r.t.Cleanup(release)
	return release
}
