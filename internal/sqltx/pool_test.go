package sqltx_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/sqltx"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// ending is a Watcher that remembers what it heard.
type ending struct {
	heard   []string
	refusal error
}

func (e *ending) Commit() error { return e.refusal }

func (e *ending) Executed(text sqltext.Text, answer sqltx.Answer) {
	for _, c := range text.Commands {
		verb := [...]string{"", "begin", "commit", "rollback", "detach", "savepoint ", "release ", "rollback to "}[c.Verb]
		e.heard = append(e.heard, verb+c.Name)
	}
	if text.Writes {
		e.heard = append(e.heard, "wrote")
	}
	if answer.Stored {
		e.Stored()
	}
	if answer.Failed {
		e.heard = append(e.heard, "failed")
	}
	if answer.After != sqltx.Unknown {
		e.heard = append(e.heard, string(rune(answer.Before))+" to "+string(rune(answer.After)))
	}
}

func (e *ending) Ended(committed bool) {
	e.heard = append(e.heard, fmt.Sprintf("ended, committed %v", committed))
}

func (e *ending) Refused() {}

func (e *ending) Stray(bool) {}

func (e *ending) Stored() { e.heard = append(e.heard, "stored") }

func (e *ending) Abandoned() {}

func (e *ending) InDoubt() { e.heard = append(e.heard, "in doubt") }

func (e *ending) Forgotten() {}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("heard %q, want %q", got, want)
	}
}

func exec(t *testing.T, tx *sql.Tx, queries ...string) {
	t.Helper()
	for _, query := range queries {
		if _, err := tx.ExecContext(context.Background(), query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
}

func TestWatcherHears(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := sqltx.New(pgtest.SQLDB(t))
	t.Run("savepoints in every spelling", func(t *testing.T) {
		w := &ending{}
		tx, err := pool.Begin(ctx, &sqltx.Opening{Watcher: w})
		if err != nil {
			t.Fatal(err)
		}
		exec(t, tx,
			"SAVEPOINT A", `savepoint "B ""b"`, " SAVEPOINT c; SELECT 1; RELEASE SAVEPOINT c", "select 'SAVEPOINT d'",
			"rollback transaction to savepoint a", "ROLLBACK WORK TO a", `RELEASE "a"`)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		want(t, w.heard, "savepoint a", `savepoint B "b`, "savepoint c", "release c",
			"rollback to a", "rollback to a", "release a", "ended, committed false")
	})
	t.Run("a commit", func(t *testing.T) {
		w := &ending{}
		tx, err := pool.Begin(ctx, &sqltx.Opening{Watcher: w})
		if err != nil {
			t.Fatal(err)
		}
		exec(t, tx, "SELECT 1")
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		want(t, w.heard, "ended, committed true")
	})
	t.Run("a commit it refuses", func(t *testing.T) {
		w := &ending{refusal: errors.New("no")}
		tx, err := pool.Begin(ctx, &sqltx.Opening{Watcher: w})
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); !errors.Is(err, w.refusal) {
			t.Error(err)
		}
		want(t, w.heard, "ended, committed false")
	})
}

// texts are what travels with a BEGIN.
type texts struct {
	before, after             string
	name, definition, execute string
	clean                     bool
}

func (t texts) Around() (before, after string)                          { return t.before, t.after }
func (t texts) Prepared() (name, definition, execute string)            { return t.name, t.definition, t.execute }
func (t texts) Answers() bool                                           { return false }
func (t texts) Opened(_ context.Context, _ sql.Result, err error) error { return err }
func (t texts) Clean(error) bool                                        { return t.clean }

// TestBeginFailsClean: a connection on which the session may still hold something is closed, any other goes back.
func TestBeginFailsClean(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, clean := range []bool{true, false} {
		t.Run(fmt.Sprint(clean), func(t *testing.T) {
			t.Parallel()
			db := pgtest.SQLDB(t, pgtest.MaxConns(1))
			key := pgtest.Key(t)
			id, _ := key.Int64()
			var before, after int
			if err := db.QueryRow("SELECT pg_backend_pid()").Scan(&before); err != nil {
				t.Fatal(err)
			}
			w := &ending{}
			_, err := sqltx.New(db).Begin(ctx, &sqltx.Opening{
				Texts:   texts{before: fmt.Sprintf("BEGIN; SELECT pg_advisory_lock(%d); COMMIT; ", id), after: "SELECT 1/0", clean: clean},
				Watcher: w,
			})
			if err == nil {
				t.Fatal("no error")
			}
			want(t, w.heard)
			if err := db.QueryRow("SELECT pg_backend_pid()").Scan(&after); err != nil {
				t.Fatal(err)
			}
			if clean != (before == after) {
				t.Errorf("clean %v: backend %d, then %d", clean, before, after)
			}
			if clean {
				if _, err := db.Exec("SELECT pg_advisory_unlock($1)", id); err != nil {
					t.Fatal(err)
				}
			}
			pgtest.AssertFree(t, key)
		})
	}
}

// What the driver refuses to begin leaves the connection as it was, as in database/sql.
func TestBeginRefusedByTheDriver(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := pgtest.SQLDB(t, pgtest.MaxConns(1))
	pid := func() (n int) {
		if err := db.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	before := pid()
	_, err := sqltx.New(db).Begin(ctx, &sqltx.Opening{Options: sql.TxOptions{Isolation: sql.LevelLinearizable}})
	if err == nil {
		t.Error("an isolation level that PostgreSQL does not have began")
	}
	if after := pid(); after != before {
		t.Errorf("backend %d took the place of %d", after, before)
	}
}

// A statement that the driver prepared before its table was altered is prepared anew, but in a transaction.
func TestPreparedBeforeTheTableWasAltered(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := pgtest.SQLDB(t, pgtest.Schema(), pgtest.MaxConns(1))
	pool := sqltx.New(db)
	t.Cleanup(func() { _ = pool.Close() })
	if _, err := db.ExecContext(ctx, "CREATE TABLE t (a int); INSERT INTO t VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	stmt, err := pool.PrepareContext(ctx, "SELECT * FROM t WHERE a = $1")
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	columns := func(query func(context.Context, ...any) (*sql.Rows, error)) (int, error) {
		rows, err := query(ctx, 1)
		if err != nil {
			return 0, err
		}
		defer rows.Close()
		names, err := rows.Columns()
		return len(names), errors.Join(err, rows.Err())
	}
	if n, err := columns(stmt.QueryContext); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := db.ExecContext(ctx, "ALTER TABLE t ADD b int"); err != nil {
		t.Fatal(err)
	}
	if n, err := columns(stmt.QueryContext); n != 2 || err != nil {
		t.Errorf("%d columns, %v", n, err)
	}
	if _, err := db.ExecContext(ctx, "ALTER TABLE t ADD c int"); err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(ctx, &sqltx.Opening{})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := columns(tx.StmtContext(ctx, stmt).QueryContext); err == nil {
		t.Errorf("%d columns in a transaction that the refusal ends", n)
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
}

func TestBeginOnAPoolThatIsClosed(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t)
	_ = db.Close()
	if _, err := sqltx.New(db).Begin(context.Background(), &sqltx.Opening{Watcher: &ending{}}); err == nil {
		t.Error("no error")
	}
}

// TestBeginWaitsForAConnection as long as its ctx, like any user of the pool.
func TestBeginWaitsForAConnection(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.MaxConns(1))
	pool := sqltx.New(db)
	first, err := pool.Begin(context.Background(), &sqltx.Opening{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := pool.Begin(ctx, &sqltx.Opening{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	_ = first.Rollback()
	second, err := pool.Begin(context.Background(), &sqltx.Opening{})
	if err != nil {
		t.Fatal(err)
	}
	_ = second.Rollback()
}

// TestManyAtOnce: transactions, prepared statements and ends of ctx from many goroutines share a few connections.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.MaxConns(4))
	pool := sqltx.New(db)
	t.Cleanup(func() { _ = pool.Close() })
	stmt, err := pool.PrepareContext(context.Background(), "SELECT $1::int + 1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stmt.Close() }()
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 40 {
				ctx, cancel := context.WithCancel(context.Background())
				tx, err := pool.Begin(ctx, &sqltx.Opening{Watcher: &ending{}})
				if err != nil {
					t.Error(err)
					cancel()
					continue
				}
				if (g+i)%4 == 0 {
					go cancel()
				}
				var n int
				if err := plusOne(ctx, tx, stmt, i, &n); err == nil && n != i+1 {
					t.Errorf("%d + 1 = %d", i, n)
				}
				if err := tx.Commit(); err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("commit: %v", err)
				}
				cancel()
				if err := stmt.QueryRow(i).Scan(&n); err != nil || n != i+1 {
					t.Errorf("outside: %d, %v", n, err)
				}
			}
		})
	}
	wg.Wait()
	// database/sql counts a connection that it is still opening or closing as in use.
	for start := time.Now(); db.Stats().InUse != 0; runtime.Gosched() {
		if time.Since(start) > 10*time.Second {
			t.Fatalf("%d connections in use", db.Stats().InUse)
		}
	}
}

// plusOne runs the statement in the transaction.
func plusOne(ctx context.Context, tx *sql.Tx, stmt *sql.Stmt, i int, n *int) error {
	inside := tx.StmtContext(ctx, stmt)
	defer func() { _ = inside.Close() }()
	return inside.QueryRowContext(ctx, i).Scan(n)
}
