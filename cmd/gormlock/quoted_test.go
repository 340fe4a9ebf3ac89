package main_test

import (
	"strings"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// A key is found by the text that is shown for it, even if nobody noted its name.
func TestList_findsKeysByWhatIsShown(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	long := strings.Repeat("long ", 40)
	for _, k := range []lockkey.Key{
		lockkey.Of("in voice", 42), lockkey.Of(`q"uo'te`, 1), lockkey.Of("a/b", "c/d"), lockkey.Of("", 1), lockkey.Of("a", ""), lockkey.Of("x\ny"),
		lockkey.Of("ü", -1), lockkey.Of(5), lockkey.Of("int64(7)"), lockkey.Of("*/* a", "b"), lockkey.Of("plain", "a*b"), lockkey.Of("a…int64(7)"),
		lockkey.Of(long, 1), lockkey.Of(strings.Repeat("x", 200)), lockkey.Of("\xff\x00\u202e"),
	} {
		p := join(t, dsn, "holder")
		p.exec("BEGIN", take(t, k))
		for _, text := range []string{k.String(), k.Name()} {
			on(t, dsn, "ls", "--key", text).is(t, 0, "exclusive", ": 1 shown")
		}
		p.exec("ROLLBACK")
	}
}

func TestList_waitsForQuotedKeys(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	k := lockkey.Of("in voice", 42)
	holder, waiter := join(t, dsn, "holder"), join(t, dsn, "waiter")
	holder.exec("BEGIN", take(t, k))
	waiter.wait(pgtest.Observe(t, dsn), take(t, k))
	for _, text := range []string{`"in voice"/42`, `"in voice"/"42"`, `in voice/42`, `"in\u0020voice"/42`} {
		on(t, dsn, "ls", "--waiting", "--key", text).is(t, 1, `waits`, ": 2 shown")
	}
	on(t, dsn, "ls", "--waiting", "--key", `"in voice"/43`).is(t, 0, ": 0 shown")
	on(t, dsn, "watch", "--count", "1", "--key", `"in voice"/42`).is(t, 0, `"in voice"/42`, ": 2 shown")
	for _, text := range []string{`"in voice`, `"in voice"42`, `"in voice"/"42`, `"\z"`, "\"in\nvoice\""} {
		on(t, dsn, "ls", "--waiting", "--key", text).is(t, 2, "--key", "quote")
		on(t, dsn, "watch", "--key", text).is(t, 2, "--key", "quote")
	}
	on(t, dsn, "ls", "--key", `"in*`).is(t, 0) // a pattern
}

// A name in the tables is found as the table shows it, with two blanks as one, and by a pattern.
func TestList_findsNotedNamesAsShown(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	p := join(t, dsn, "psql")
	p.exec("CREATE TABLE gormlock_key_name (space smallint, id bigint, name text, scope text, used_at timestamptz, PRIMARY KEY (space, id))",
		`INSERT INTO gormlock_key_name VALUES (1, 9, '"in  voice"/9', 'session', now())`, "SELECT pg_advisory_lock(9), pg_advisory_lock(7, 42)")
	on(t, dsn, "ls").is(t, 0, `"in voice"/9`)
	for _, text := range []string{`"in voice"/9`, `"in  voice"/9`, `"in *`, "9", "int64(9)", "pair(7,42)", "30064771114", "pair(7,*"} {
		on(t, dsn, "ls", "--key", text).is(t, 0, ": 1 shown")
	}
}
