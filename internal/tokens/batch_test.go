package tokens_test

import (
	"fmt"
	"testing"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/tokens"
	"github.com/gormlock/gormlock/lockkey"
)

func TestBatch_issuesForManyKeysAtOnce(t *testing.T) {
	t.Parallel()
	db := table(t)
	var wanted []tokens.Key
	for i := range 100 {
		wanted = append(wanted, key(t, lockkey.Of("many", i, `"{,}\`)))
	}
	wanted = append(wanted, key(t, lockkey.Pair(1, -2)))
	for round := range 3 {
		if got := batch(t, db, []string{tokens.Batch, tokens.BatchUnlocked}[round%2], wanted); len(got) != len(wanted) {
			t.Fatalf("round %d: %d of %d keys got a token", round, len(got), len(wanted))
		} else {
			for _, w := range wanted {
				if n := got[fmt.Sprint(w.Space, w.ID)]; n != 1<<40+1+int64(round) {
					t.Errorf("round %d: %v got %d", round, w.Name, n)
				}
			}
		}
	}
	var name string
	if err := db.QueryRowContext(t.Context(), "SELECT name FROM gormlock_fence WHERE id = $1", wanted[7].ID).Scan(&name); err != nil || name != wanted[7].Name {
		t.Errorf("the name of %q is %q, %v", wanted[7].Name, name, err)
	}
	if got := batch(t, db, tokens.Batch, nil); len(got) != 0 {
		t.Errorf("no key got %v", got)
	}
}

// L11: a locked row is left out and does not delay the others.
func TestBatchUnlocked_leavesOutLockedRows(t *testing.T) {
	t.Parallel()
	db := table(t)
	a, b := key(t, lockkey.Of("a")), key(t, lockkey.Of("b"))
	batch(t, db, tokens.Batch, []tokens.Key{a})
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fence.Latest(t.Context(), tx, fence.Token{Space: a.Space, ID: a.ID, Name: a.Name}); err != nil {
		t.Fatal(err)
	}
	got := batch(t, db, tokens.BatchUnlocked, []tokens.Key{a, b})
	if _, ok := got[fmt.Sprint(a.Space, a.ID)]; ok || len(got) != 1 {
		t.Errorf("got %v", got)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if got := batch(t, db, tokens.BatchUnlocked, []tokens.Key{a}); got[fmt.Sprint(a.Space, a.ID)] != 1<<40+2 {
		t.Errorf("after the rollback: %v", got)
	}
}

func batch(t *testing.T, q fence.Queryer, sql string, keys []tokens.Key) map[string]int64 {
	t.Helper()
	args := tokens.BatchArgs(keys)
	rows, err := q.QueryContext(t.Context(), sql, args[0], args[1], args[2])
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	got := map[string]int64{}
	for rows.Next() {
		var space int16
		var id, number int64
		if err := rows.Scan(&space, &id, &number); err != nil {
			t.Fatal(err)
		}
		got[fmt.Sprint(space, id)] = number
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return got
}
