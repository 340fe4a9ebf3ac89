package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// example is a PostgreSQL with the table of tokens, and one of reports. Programs have a *sql.DB of their own, and call
// fence.Migrate.
func example() (ctx context.Context, db *sql.DB, end func()) {
	t := pgtest.NewExample()
	return t.Context(), table(t, "CREATE TABLE reports (id bigint, body text); INSERT INTO reports VALUES (1, 'draft')"), t.End
}

// holders are the tokens of two holders of a key. The first was superseded while it slept.
func holders(ctx context.Context, db *sql.DB) (first, second fence.Token, err error) {
	key := lockkey.Of("report", 1)
	if first, err = fence.Issue(ctx, db, key); err == nil {
		second, err = fence.Issue(ctx, db, key)
	}
	return first, second, err
}

// Each holder of a key gets a greater number. Session locks and leases issue tokens themselves.
func ExampleIssue() {
	ctx, db, end := example()
	defer end()

	first, err := fence.Issue(ctx, db, lockkey.Of("report", 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := fence.Issue(ctx, db, lockkey.Of("report", 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("second is later:", second.Number > first.Number)
	// Output: second is later: true
}

// A holder that was superseded while it slept wakes up and writes: no row is changed.
func ExampleToken_Guard() {
	ctx, db, end := example()
	defer end()
	write := func(token fence.Token, body string) error {
		args := append([]any{body, 1}, token.Args()...)
		result, err := db.ExecContext(ctx, "UPDATE reports SET body = $1 WHERE id = $2 AND "+token.Guard(3), args...)
		if err != nil {
			return err
		}
		rows, err := result.RowsAffected()
		fmt.Println(body, "rows:", rows)
		return err
	}

	old, latest, err := holders(ctx, db)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := errors.Join(write(latest, "new"), write(old, "old")); err != nil {
		fmt.Println(err)
	}
	// Output:
	// new rows: 1
	// old rows: 0
}

// A token travels in a context: functions that are called find it there.
func ExampleNewContext() {
	token, err := fence.For(lockkey.Of("report", 1), 7) // as a lock hands it out
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := fence.NewContext(context.Background(), token)
	for _, carried := range fence.FromContext(ctx) {
		fmt.Println("token", carried.Number)
	}
	// Output: token 7
}

// In a transaction: nobody gets a later token until it ends, so what it checks here holds until its commit.
func ExampleLatest() {
	ctx, db, end := example()
	defer end()
	mine, err := fence.Issue(ctx, db, lockkey.Of("report", 1))
	if err != nil {
		fmt.Println(err)
		return
	}

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = tx.Rollback() }()
	latest, err := fence.Latest(ctx, tx, mine)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("superseded:", latest > mine.Number)
	// Output: superseded: false
}

// An insert has no row whose token it could compare. Value is NULL for a superseded holder, and the NOT NULL column refuses it.
func ExampleToken_Value() {
	ctx, db, end := example()
	defer end()
	if _, err := db.ExecContext(ctx, "CREATE TABLE pages (body text, fence bigint NOT NULL)"); err != nil {
		fmt.Println(err)
		return
	}
	insert := func(token fence.Token, body string) error {
		args := append([]any{body}, token.Args()...)
		_, err := db.ExecContext(ctx, "INSERT INTO pages (body, fence) VALUES ($1, "+token.Value(2)+")", args...)
		return err
	}

	old, latest, err := holders(ctx, db)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("refused:", insert(latest, "new") != nil, insert(old, "old") != nil)
	// Output: refused: false true
}
