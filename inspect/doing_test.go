package inspect_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// A wait of a gormlock statement is shown with its purpose and the names of its keys.
func TestSnapshot_putsGormlocksOwnStatementsIntoWords(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t)
	key, other := pgtest.Key(t, "a"), pgtest.Key(t, "b")
	holder := pgtest.Conn(t)
	lock(t, holder, key)
	tx, err := pgtest.SQLDB(t).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // ended below
	var waiter int
	if err := tx.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&waiter); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- advisory.Acquire(context.WithoutCancel(t.Context()), tx, []lockkey.Key{key, other}, advisory.Timeout(time.Minute))
	}()
	pgtest.WaitBackendBlocked(t, waiter)
	m, err := sessionlock.Open(t.Context(), pgtest.DSN(t), sessionlock.Owner("billing-7"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(t.Context())
	session := make(chan error, 1)
	go func() {
		l, err := m.Acquire(context.WithoutCancel(t.Context()), key)
		if err == nil {
			err = l.Release(context.WithoutCancel(t.Context()))
		}
		session <- err
	}()
	pgtest.WaitBlocked(t, key, 2)

	keys := []lockkey.Key{key, other}
	if lockkey.Compare(key, other) > 0 {
		keys[0], keys[1] = other, key
	}
	v := snapshot(t, db, inspect.Known(key, other))
	if got, want := v.Session(waiter).Doing, "takes "+keys[0].String()+", "+keys[1].String()+", timeout 1m"; got != want {
		t.Errorf("the transaction: %q, want %q", got, want)
	}
	if doing := v.Session(pid(holder)).Doing; doing != "" {
		t.Errorf("a statement of psql is %q", doing)
	}
	sliced := "" // the session lock is requested in slices, with pauses between them
	for deadline := time.Now().Add(20 * time.Second); sliced == "" && time.Now().Before(deadline); {
		for _, l := range snapshot(t, db, inspect.Known(key)).Locks {
			if l.Owner == "billing-7" && !l.Granted {
				sliced = l.Doing
			}
		}
	}
	if want := "takes " + key.String(); sliced != want {
		t.Errorf("the session lock: %q, want %q", sliced, want)
	}
	unlock(t, holder, key)
	if err := <-done; err != nil {
		t.Error(err)
	}
	v = snapshot(t, db, inspect.Known(key, other))
	if s := v.Session(waiter); s == nil || !strings.HasPrefix(s.Doing, "asked for ") || s.Query == "" || len([]rune(s.Query)) > 500 {
		t.Errorf("when it has them: %+v", s)
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	if err := <-session; err != nil {
		t.Error(err)
	}
}

// The trap of db in place of tx: a program waits for a transaction that cannot end because the program waits.
func TestSnapshot_hintsAtDBInPlaceOfTX(t *testing.T) {
	t.Parallel()
	const hint = "probably db used in place of tx"
	for name, c := range map[string]struct {
		app, otherApp string
		first, second string
		meanwhile     func(t *testing.T, tx *pgx.Conn) // after the wait has begun
		want          bool
	}{
		"a row":                   {"shop", "shop", "UPDATE accounts SET balance = 1", "UPDATE accounts SET balance = 2", nil, true},
		"an advisory lock":        {"shop", "shop", "SELECT pg_advisory_xact_lock(%)", "SELECT pg_advisory_xact_lock(%)", nil, true},
		"after an error":          {"shop", "shop", "UPDATE accounts SET balance = 1; SAVEPOINT a", "UPDATE accounts SET balance = 2", nil, true},
		"no name":                 {"", "", "UPDATE accounts SET balance = 1", "UPDATE accounts SET balance = 2", nil, true},
		"another program's":       {"shop", "psql", "UPDATE accounts SET balance = 1", "UPDATE accounts SET balance = 2", nil, false},
		"it went on meanwhile":    {"shop", "shop", "UPDATE accounts SET balance = 1", "UPDATE accounts SET balance = 2", goesOn, false},
		"held by an idle session": {"shop", "shop", "SELECT pg_advisory_lock(%); COMMIT", "SELECT pg_advisory_xact_lock(%)", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			session := func(app string) *pgx.Conn {
				return pgtest.Conn(t, pgtest.Schema(), pgtest.Param("application_name", app))
			}
			tx, db := session(c.app), session(c.otherApp)
			accounts(t, tx)
			key := arguments(pgtest.Key(t))
			text := func(sql string) string { return strings.ReplaceAll(sql, "%", key) }
			run(t, tx, "BEGIN")
			run(t, tx, text(c.first))
			finish := begin(t, db, text(c.second))
			pool := pgtest.SQLDB(t)
			v := snapshot(t, pool)
			l := waitOf(t, v, db)
			for n := 0; c.meanwhile != nil && (n == 0 || n < 100 && l.Hint != ""); n++ { // the server notes the beginning of a wait a moment later
				c.meanwhile(t, tx)
				v = snapshot(t, pool)
				l = waitOf(t, v, db)
			}
			if got := strings.HasPrefix(l.Hint, hint); got != c.want {
				t.Errorf("hint %q of a wait since %s for %+v", l.Hint, l.Since, v.Session(pid(tx)))
			}
			for _, held := range v.Locks {
				if held.Granted && held.Hint != "" {
					t.Errorf("a lock that is held has the hint %q", held.Hint)
				}
			}
			run(t, tx, text("ROLLBACK; SELECT pg_advisory_unlock(%)"))
			finish()
		})
	}
}

func goesOn(t *testing.T, tx *pgx.Conn) {
	t.Helper()
	run(t, tx, "SELECT 1")
}

// A session that the role cannot see is not suspected.
func TestSnapshot_hintsAtNothingItCannotSee(t *testing.T) {
	t.Parallel()
	role := strings.ToLower(strings.ReplaceAll(pgtest.Key(t).Name(), "/", "_"))
	admin := pgtest.Conn(t)
	run(t, admin, `CREATE ROLE "`+role+`" LOGIN`)
	defer run(t, admin, `DROP ROLE "`+role+`"`)
	key := arguments(pgtest.Key(t))
	tx, db := pgtest.Conn(t), pgtest.Conn(t)
	run(t, tx, "BEGIN; SELECT pg_advisory_xact_lock("+key+")")
	finish := begin(t, db, "SELECT pg_advisory_xact_lock("+key+")")
	plain := pgtest.SQLDB(t, pgtest.Param("role", role))
	if l := waitOf(t, snapshot(t, plain), db); l.Hint != "" || l.Doing != "" {
		t.Errorf("%+v", l)
	}
	run(t, tx, "ROLLBACK")
	finish()
}
