package key

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

var samples = []string{
	"orders:42", "nightly", "a", "0123456789", "it's", `back\slash`, "é", "日本語", "😀 and 𝔘", "two\nlines", `"quoted"`, "%", "$1", "--", "",
}

// arguments are sample arguments of a scheme, including the least numbers of a type.
func arguments(s scheme) [][]string {
	switch s.names[0] {
	case "int64", "que":
		return [][]string{{"7"}, {"-7"}, {"9223372036854775807"}, {"-9223372036854775808"}}
	case "pair":
		return [][]string{{"7", "42"}, {"-1", "-2147483648"}, {"-2147483648", "2147483647"}}
	case "rails-number":
		return [][]string{{"42"}, {"-42", "7"}, {"-9223372036854775808"}}
	case "rails":
		return [][]string{{"orders:42"}, {"orders:42", "42abc"}, {"it's", "myapp_"}, {"\xff\x00"}, {""}}
	case "rails-migrator", "sqlx", "golang-migrate":
		return [][]string{{"app_production"}, {"é"}, {"it's"}}
	case "flyway":
		return [][]string{{"public"}, {"public", "history"}, {`a"b`, "😀"}}
	case "hashtextextended":
		return [][]string{{"a"}, {"a", "-1"}, {"a", "-9223372036854775808"}, {"日本語", "7"}}
	case "hashtext-pair":
		return [][]string{{"orders", "42"}, {"it's", `\`}}
	}
	var all [][]string
	for _, text := range samples {
		all = append(all, []string{text})
	}
	return all
}

// The SQL that is shown computes the id on a server, and the statement that takes the lock takes it.
func TestSchemes_theSQLIsTheKey(t *testing.T) {
	t.Parallel()
	conn := pgtest.Conn(t, pgtest.Through(pgtest.Database(t)))
	computed := 0
	for _, s := range schemes() {
		if s.row != nil {
			continue
		}
		computes := s.needs == "" || extend(t, conn, s.needs)
		for _, args := range arguments(s) {
			k, err := s.key(args)
			if err != nil {
				t.Fatalf("%s %q: %v", s.names[0], args, err)
			}
			r := reportOf(s, k, args)
			check := fmt.Sprintf("SELECT %s", locked(r))
			var held bool
			if _, err := conn.Exec(t.Context(), r.Take[1]); err != nil {
				t.Errorf("%s %q: %s: %v", s.names[0], args, r.Take[1], err)
			}
			if err := conn.QueryRow(t.Context(), check).Scan(&held); err != nil || !held {
				t.Errorf("%s %q: %s did not take what %s shows: %v", s.names[0], args, r.Take[1], check, err)
			}
			unlock := "SELECT pg_advisory_unlock(" + strings.TrimSuffix(strings.TrimPrefix(r.Compute, "SELECT "), ";") + ")"
			if r.Compute == "" || !computes {
				unlock = "SELECT pg_advisory_unlock(" + r.Arguments + ")"
			} else {
				computed++
			}
			if err := conn.QueryRow(t.Context(), unlock).Scan(&held); err != nil || !held {
				t.Errorf("%s %q: %s: %v %v", s.names[0], args, unlock, held, err)
				_, _ = conn.Exec(t.Context(), "SELECT pg_advisory_unlock_all()")
			}
		}
	}
	if computed < 100 {
		t.Errorf("only %d were computed by SQL", computed)
	}
}

func locked(r *keyReport) string {
	return fmt.Sprintf("EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted"+
		" AND classid = %d AND objid = %d AND objsubid = %d)", r.ClassID, r.ObjectID, r.Space)
}

// extend installs an extension that some schemes need, and reports whether the server has it.
func extend(t *testing.T, conn *pgx.Conn, extension string) bool {
	t.Helper()
	var there bool
	if err := conn.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = $1)", extension).Scan(&there); err != nil {
		t.Fatal(err)
	}
	if !there {
		t.Logf("this server has no %s: the SQL that needs it is not tried", extension)
		return false
	}
	if _, err := conn.Exec(t.Context(), "CREATE EXTENSION IF NOT EXISTS "+pgx.Identifier{extension}.Sanitize()); err != nil {
		t.Fatal(err)
	}
	return true
}

func TestSchemes_everyNameIsFoundAndCountsItsArguments(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range schemes() {
		for _, name := range s.names {
			if seen[name] {
				t.Errorf("two schemes are named %s", name)
			}
			seen[name] = true
			if found, err := schemeNamed(name); err != nil || found.names[0] != s.names[0] {
				t.Errorf("%s: %v, %v", name, found.names, err)
			}
		}
		if s.count(nil) == nil {
			t.Errorf("%s takes no arguments", s.names[0])
		}
		if s.names[0] == gormlockScheme || s.names[0] == "golang-migrate" {
			continue
		}
		if s.count(make([]string, len(s.args)+1)) == nil {
			t.Errorf("%s takes more than %s", s.names[0], s.form())
		}
	}
}

func TestIDs_leastNumbersAreLiterals(t *testing.T) {
	t.Parallel()
	for want, k := range map[string]lockkey.Key{
		"'-9223372036854775808'::bigint": lockkey.Int64(-1 << 63),
		"'-2147483648'::int, 2147483647": lockkey.Pair(-1<<31, 1<<31-1),
		"-1, '-2147483648'::int":         lockkey.Pair(-1, -1<<31),
		"-9223372036854775807":           lockkey.Int64(-1<<63 + 1),
	} {
		if got := ids(k); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
