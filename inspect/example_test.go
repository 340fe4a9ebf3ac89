package inspect_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"

	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/lockkey"
)

// Who is in the way of others, and of how many.
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

func ExampleSnapshot() {
	var db *sql.DB // of a GORM database: db.DB()
	look := func(ctx context.Context) error {
		view, err := inspect.Snapshot(ctx, db, inspect.Known(lockkey.Of("invoice", 42)))
		if err != nil {
			return err
		}
		for _, l := range view.Locks {
			fmt.Println(l.Key, l.Mode, l.Granted, l.PID, l.Application)
		}
		for _, missing := range view.Unseen {
			fmt.Println("not visible:", missing)
		}
		return nil
	}
	_ = look
}

func ExampleHandler() {
	var db *sql.DB
	onlyAdmins := func(next http.Handler) http.Handler { return next }
	page := inspect.Handler(db, inspect.AllowCancel(func(r *http.Request) bool { return r.Header.Get("X-Role") == "dba" }))
	defer page.Close()
	http.Handle("/locks", onlyAdmins(page))
}
