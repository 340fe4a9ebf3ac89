package tokens_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/tokens"
	"github.com/gormlock/gormlock/lockkey"
)

func TestIssueFrom_numbersEachRow(t *testing.T) {
	t.Parallel()
	db := table(t)
	k := key(t, lockkey.Of("report"))
	issue := `WITH durable AS MATERIALIZED (` + tokens.Durable + `), taken AS MATERIALIZED (
			SELECT $1::smallint AS space, $2::bigint AS id, $3::text AS name FROM durable
		), issued AS (` + tokens.IssueFrom("taken") + `)
		SELECT token FROM issued`
	for want := int64(1<<40 + 1); want < 1<<40+4; want++ {
		var number int64
		if err := db.QueryRowContext(t.Context(), issue, k.Space, k.ID, k.Name).Scan(&number); err != nil || number != want {
			t.Errorf("got %d, %v, want %d", number, err, want)
		}
	}
	var one int64
	if err := db.QueryRowContext(t.Context(), tokens.IssueOne, k.Space, k.ID, k.Name).Scan(&one); err != nil || one != 1<<40+4 {
		t.Errorf("IssueOne after them: %d, %v", one, err)
	}
}

// L11: whatever the session has, the statement waits for its commit.
func TestDurable_waitsForTheCommit(t *testing.T) {
	t.Parallel()
	db := table(t)
	for session, want := range map[string]string{"off": "on", "local": "local", "on": "on"} {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.ExecContext(t.Context(), "SET synchronous_commit = "+session); err != nil {
			t.Fatal(err)
		}
		var within, after string
		err = conn.QueryRowContext(t.Context(), `WITH durable AS MATERIALIZED (`+tokens.Durable+`) SELECT current_setting('synchronous_commit') FROM durable`).Scan(&within)
		if err == nil {
			err = conn.QueryRowContext(t.Context(), "SHOW synchronous_commit").Scan(&after)
		}
		if err != nil || within != want || after != session {
			t.Errorf("%s: within %s, after %s, %v", session, within, after, err)
		}
		_ = conn.Close()
	}
}

func TestExplain_namesTheCureOfAMissingTable(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.Schema())
	_, err := db.ExecContext(t.Context(), "SELECT * FROM gormlock_fence")
	if !strings.Contains(fmt.Sprint(tokens.Explain(err)), "fence.Migrate creates the table") || !errors.Is(tokens.Explain(err), err) {
		t.Errorf("%v", tokens.Explain(err))
	}
	if other := errors.New("cut"); tokens.Explain(other) != other { //nolint:errorlint // the value itself
		t.Error("any error is that of a missing table")
	}
}
