package journal

import (
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
)

// Transactions and connections keep their *sql.DB where it is looked for.
func TestBehind(t *testing.T) {
	t.Parallel()
	db, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	mock.ExpectBegin()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil || behind(tx) != db {
		t.Errorf("sql.Tx keeps its *sql.DB elsewhere: %v", err)
	}
	conn, err := db.Conn(t.Context())
	if err != nil || behind(conn) != db {
		t.Errorf("sql.Conn keeps its *sql.DB elsewhere: %v", err)
	}
}

func TestIsQualified(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{`"a"."b"`: true, "a.b": true, "`a`.`b`": true, `"a.b"`: false, `"a""."`: false, "b": false, "pg_temp.b": false, `"pg_temp"."b"`: false} {
		if isQualified(name) != want {
			t.Errorf("%s: not %v", name, want)
		}
	}
}
