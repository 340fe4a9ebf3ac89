package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// shop is a program with GORM and gormlock, on a database of its own.
func shop(t *testing.T) (db *gorm.DB, dsn string) {
	t.Helper()
	dsn = pgtest.Database(t)
	db = pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Through(dsn), pgtest.Param("application_name", "shop"))
	for _, sql := range []string{"CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL)", "INSERT INTO accounts VALUES (1, 0)"} {
		if err := db.Exec(sql).Error; err != nil {
			t.Fatal(err)
		}
	}
	return db, dsn
}

// waits runs f in the background until it waits for a lock, and returns the waiting process. The end of the test ends the context of f, and waits
// for f.
func waits(t *testing.T, dsn string, f func(ctx context.Context)) (pid int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	watcher := join(t, dsn, "test")
	eventually(t, "wait for a lock", func() (bool, string) {
		err := watcher.QueryRow(t.Context(), "SELECT pid FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE datname = current_database() AND NOT granted AND waitstart IS NOT NULL").Scan(&pid)
		return err == nil, fmt.Sprint(err)
	})
	return pid
}

// A program that uses db inside of a transaction instead of tx waits for itself for ever: every command says so.
func TestDBInPlaceOfTX_isSaid(t *testing.T) {
	t.Parallel()
	db, dsn := shop(t)
	tx := db.Begin()
	defer tx.Rollback()
	if err := tx.Exec("UPDATE accounts SET balance = balance - 10 WHERE id = 1").Error; err != nil {
		t.Fatal(err)
	}
	var holder int
	if err := tx.Raw("SELECT pg_backend_pid()").Scan(&holder).Error; err != nil {
		t.Fatal(err)
	}
	waiter := waits(t, dsn, func(ctx context.Context) {
		_ = db.WithContext(ctx).Exec("UPDATE accounts SET balance = 0 WHERE id = 1").Error // db, not tx; it ends with ctx
	})
	says := fmt.Sprintf("probably db used in place of tx: %d belongs to the same program and is idle in transaction", holder)
	on(t, dsn, "why", strconv.Itoa(waiter)).is(t, 1, "  "+says, fmt.Sprintf("%d: in its program, use tx in place of db", holder))
	on(t, dsn, "why", strconv.Itoa(holder)).is(t, 0, "use tx in place of db")
	on(t, dsn, "ls", "--waiting").is(t, 1, fmt.Sprintf("%d waits: %s", waiter, says))
	var v struct{ Locks []struct{ Hint string } }
	r := on(t, dsn, "ls", "--json")
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || len(v.Locks) == 0 || v.Locks[0].Hint != says {
		t.Errorf("%v in %s", err, r.out)
	}
	screen := terminalOf(t, 80, 12, program{args: []string{"watch", "--count", "1"}, env: []string{"DATABASE_URL=" + dsn, "NO_COLOR=1"}})
	if out := screen.end(0); !strings.Contains(out, "probably db used in place of tx") || !strings.Contains(out, "is idle in transaction") {
		t.Errorf("watch: %s", out)
	}
}

// The same is said if others wait in between. If a program sets no application_name, the text says that it may be another program.
func TestDBInPlaceOfTX_isSaidBehindOthers(t *testing.T) {
	t.Parallel()
	for app, c := range map[string]struct{ says, cure string }{
		"shop": {"probably db used in place of tx: behind SECOND it waits for FIRST, which belongs to the same program and is idle in transaction", "FIRST: in its program, use tx"},
		"": {"probably db used in place of tx, or another program here that sets no application_name either: behind SECOND it waits for FIRST, which is idle in transaction",
			"FIRST: if it is the program that waits for it, use tx"},
	} {
		t.Run("of "+app, func(t *testing.T) {
			t.Parallel()
			_, dsn := shop(t)
			o := pgtest.Observe(t, dsn)
			first, second, third := join(t, dsn, app), join(t, dsn, "billing"), join(t, dsn, app)
			first.exec("BEGIN", "UPDATE accounts SET balance = 1")
			second.wait(o, "UPDATE accounts SET balance = 2")
			on(t, dsn, "why", first.arg()).is(t, 0, "1 request waits for "+first.arg()+", itself or through others: "+second.arg())
			third.wait(o, "UPDATE accounts SET balance = 3")
			pids := strings.NewReplacer("FIRST", first.arg(), "SECOND", second.arg())
			says := pids.Replace(c.says)
			on(t, dsn, "why", third.arg()).is(t, 1, "  "+says, pids.Replace(c.cure))
			on(t, dsn, "why", first.arg()).is(t, 0, pids.Replace(c.cure), "2 requests wait for "+first.arg())
			on(t, dsn, "ls").is(t, 0, third.arg()+" waits: "+says)
			on(t, dsn, "watch", "--count", "1").is(t, 0, third.arg()+" waits: "+says)
		})
	}
}

// Of many such waits the first few are named, and the others counted.
func TestDBInPlaceOfTX_ofMany(t *testing.T) {
	t.Parallel()
	_, dsn := shop(t)
	o := pgtest.Observe(t, dsn)
	first := join(t, dsn, "shop")
	first.exec("BEGIN", "UPDATE accounts SET balance = 1")
	for i := range 5 {
		join(t, dsn, "shop").wait(o, "UPDATE accounts SET balance = 2")
		if i == 3 {
			on(t, dsn, "ls").is(t, 0, "\n1 more request waits like that\n")
		}
	}
	on(t, dsn, "ls").is(t, 0, "\n2 more requests wait like that\n")
}

// A wait of a gormlock statement is shown as what it asks for.
func TestOwnStatements_areSaidInWords(t *testing.T) {
	t.Parallel()
	db, dsn := shop(t)
	key := gormlock.Key("invoice", 42)
	tx := db.Begin()
	defer tx.Rollback()
	if err := gormlock.AcquireXactLock(tx, []lockkey.Key{key}); err != nil {
		t.Fatal(err)
	}
	waiter := waits(t, dsn, func(ctx context.Context) {
		_ = gormlock.Transaction(db.WithContext(ctx), func(*gorm.DB) error { return nil }, gormlock.Locking(key, gormlock.Timeout(time.Minute)))
	})
	r := on(t, dsn, "ls", "--key", "invoice/42")
	r.is(t, 0, "begins, takes invoice/42, timeout 1m", "idle in transaction: asked for invoice/42")
	if strings.Contains(r.out, "SAVEPOINT") || strings.Contains(r.out, "MATERIALIZED") {
		t.Errorf("its SQL is shown: %s", r.out)
	}
	on(t, dsn, "why", strconv.Itoa(waiter)).is(t, 1, "\n  begins, takes int64(1840925882773462882), timeout 1m\n", "last: asked for int64(")
	if r := on(t, dsn, "ls", "--json"); !strings.Contains(r.out, `"doing": "begins, takes`) || !strings.Contains(r.out, `"query": "BEGIN; WITH before`) {
		t.Errorf("%s", r.out)
	}
	on(t, dsn, "cancel", strconv.Itoa(waiter), "--yes").is(t, 0, "begins, takes int64(")
}

// No line is longer than the terminal is wide, and no column is cut that says who waits for whom and for what.
func TestList_fitsTheTerminal(t *testing.T) {
	t.Parallel()
	s := stage(t)
	colours := regexp.MustCompile(`\x1b\[[0-9;]*m`)
	for _, columns := range []uint16{60, 80, 120, 200} {
		screen := terminalOf(t, columns, 40, program{args: []string{"ls", "--key", "invoice/42"}, env: []string{"DATABASE_URL=" + s.dsn}})
		out := colours.ReplaceAllString(strings.ReplaceAll(screen.end(0), "\r\n", "\n"), "")
		for line := range strings.SplitSeq(out, "\n") {
			if n := utf8.RuneCountInString(strings.TrimPrefix(line, "1 advisory lock held in database ")); n > int(columns) {
				t.Errorf("on %d columns a line of %d: %s", columns, n, line)
			}
		}
		for _, want := range []string{
			"invoice/42", "waits", "blocks", s.billing.arg(), s.worker.arg(), s.psql.arg(), "billing", "worker",
			"SELECT pg_advisory_xact_lock(1840925882773462882)", "UPDATE accounts SET balance = 2 WHERE id = 1",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("on %d columns %q is missing:\n%s", columns, want, out)
			}
		}
		if narrow := strings.Contains(out, "left out for want of room: CLIENT"); narrow != (columns <= 80) {
			t.Errorf("on %d columns:\n%s", columns, out)
		}
	}
}

// One long key or program name takes no room from the others, and the output says where it is cut.
func TestList_ofALongKey(t *testing.T) {
	t.Parallel()
	s := stage(t)
	db := pgtest.SQLDB(t, pgtest.Through(s.dsn))
	if err := inspect.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	longer := join(t, s.dsn, "gormlock worker-production-eu-central-1:99182:K4TQ2WZ7")
	key := "tenant/" + strings.Repeat("k", 440) + "/42"
	longer.exec("SELECT pg_advisory_lock(7)", "INSERT INTO gormlock_key_name VALUES (1, 7, '"+key+"', 'session', now())")
	for columns, want := range map[uint16][]string{
		80:  {"int64(1840925882773462882)", "tenant/k", "kk/42", "left out for want of room: CLIENT, USER, SCOPE, MODE;", "too long for the table: where KEY has …"},
		120: {"int64(1840925882773462882)", "tenant/k", "kk/42", "left out for want of room: CLIENT;", "too long for the table: where KEY has …,"},
		240: {"int64(1840925882773462882)", "tenant/k", "kk/42", "127.0.0.1:", "too long for the table: where KEY has …, gormlock ls --json has all of it"},
	} {
		screen := terminalOf(t, columns, 60, program{args: []string{"ls"}, env: []string{"DATABASE_URL=" + s.dsn, "NO_COLOR=1"}})
		out := screen.end(0)
		for _, text := range want {
			if !strings.Contains(out, text) {
				t.Errorf("on %d columns %q is missing:\n%s", columns, text, out)
			}
		}
	}
	on(t, s.dsn, "ls").is(t, 0, key)
	on(t, s.dsn, "ls", "--json").is(t, 0, key)
}
