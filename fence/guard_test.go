package fence_test

import (
	"database/sql"
	"testing"

	"github.com/gormlock/gormlock/lockkey"
)

func rows(t *testing.T, res sql.Result, err error) int64 {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// L1: a superseded holder is refused before the later one has written anything.
func TestGuard_refusesAsSoonAsALaterTokenIsIssued(t *testing.T) {
	t.Parallel()
	db := table(t, "CREATE TABLE reports (id int PRIMARY KEY, body text, fence bigint NOT NULL)")
	a := issue(t, db, lockkey.Of("report", 1))
	insert := func(id int) (sql.Result, error) {
		return db.ExecContext(t.Context(), "INSERT INTO reports VALUES ($1, 'a', "+a.Value(2)+")", append([]any{id}, a.Args()...)...)
	}
	update := func() int64 {
		res, err := db.ExecContext(t.Context(), "UPDATE reports SET body = $1, fence = $4 WHERE id = 1 AND fence <= $4 AND "+a.Guard(2),
			append([]any{"a again"}, a.Args()...)...)
		return rows(t, res, err)
	}

	res, err := insert(1)
	if n := rows(t, res, err); n != 1 {
		t.Fatalf("the holder inserted %d rows", n)
	}
	if n := update(); n != 1 {
		t.Fatalf("the holder changed %d rows", n)
	}
	issue(t, db, lockkey.Of("report", 2))
	if n := update(); n != 1 {
		t.Fatalf("a token of another key stopped the holder: %d rows", n)
	}

	b := issue(t, db, lockkey.Of("report", 1))
	if n := update(); n != 0 {
		t.Errorf("the superseded holder changed %d rows", n)
	}
	if _, err := insert(2); err == nil {
		t.Error("the superseded holder inserted a row")
	}
	res, err = db.ExecContext(t.Context(), "UPDATE reports SET body = 'b' WHERE id = 1 AND "+b.Guard(1), b.Args()...)
	if n := rows(t, res, err); n != 1 {
		t.Errorf("the holder changed %d rows", n)
	}
}

// The control: the row's own column alone lets the superseded holder write.
func TestGuard_theColumnAloneIsNotEnough(t *testing.T) {
	t.Parallel()
	db := table(t, "CREATE TABLE reports (id int PRIMARY KEY, fence bigint NOT NULL); INSERT INTO reports VALUES (1, 0)")
	a := issue(t, db, lockkey.Of("report", 1))
	issue(t, db, lockkey.Of("report", 1))
	res, err := db.ExecContext(t.Context(), "UPDATE reports SET fence = $1 WHERE id = 1 AND fence <= $1", a.Number)
	if n := rows(t, res, err); n != 1 {
		t.Errorf("%d rows: the test of the guard proves nothing", n)
	}
}
