package inspect_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// example starts PostgreSQL. A program has its own *sql.DB: for a GORM database it is db.DB().
func example() (ctx context.Context, db *sql.DB, end func()) {
	t := pgtest.NewExample()
	db = pgtest.SQLDB(t, pgtest.Through(pgtest.Database(t)))
	return context.Background(), db, t.End
}

// Tree says which sessions block others, and how many.
func ExampleTree() {
	holder, waiter := &inspect.Session{PID: 11}, &inspect.Session{PID: 12, Blockers: []int{11}}
	view := &inspect.View{ // as Snapshot returns it
		Sessions: []*inspect.Session{holder, waiter},
		Locks: []inspect.Lock{
			{Key: "invoice/42", Thing: "a", Session: waiter},
			{Key: "invoice/42", Thing: "a", Granted: true, Waiters: 1, Session: holder},
		},
	}
	for _, root := range inspect.Tree(view) {
		fmt.Printf("%d holds %s\n", root.PID, root.Holds[0].Key)
		for _, w := range root.Waiters {
			fmt.Printf("  %d waits for it\n", w.PID)
		}
	}
	// Output:
	// 11 holds invoice/42
	//   12 waits for it
}

// Snapshot says who holds which lock, and who waits for it.
func ExampleSnapshot() {
	ctx, db, end := example()
	defer end()
	key := lockkey.Of("invoice", 42)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = tx.Rollback() }()
	if err := advisory.Acquire(ctx, tx, []lockkey.Key{key}); err != nil {
		fmt.Println(err)
		return
	}

	view, err := inspect.Snapshot(ctx, db, inspect.Known(key))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range view.Locks {
		fmt.Println(l.Key, l.Mode, "granted:", l.Granted)
	}
	// Output: invoice/42 exclusive granted: true
}

// The page is an http.Handler: your middleware decides who can see it, and AllowCancel decides who can end a session.
func ExampleHandler() {
	_, db, end := example()
	defer end()
	isDBA := func(r *http.Request) bool { return r.Header.Get("X-Role") == "dba" }

	page := inspect.Handler(db, inspect.AllowCancel(isDBA))
	defer page.Close()
	mux := http.NewServeMux()
	mux.Handle("/locks/", http.StripPrefix("/locks", page))

	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/locks/", http.NoBody))
	fmt.Println(answer.Code, answer.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}
