package lockkey_test

import (
	"errors"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

func number(t *testing.T, conn *pgx.Conn, sql string, args ...any) (n int64) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// documented is the one match of pattern in the package comment.
func documented(t *testing.T, pattern string) string {
	t.Helper()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(pattern).FindAllString(string(doc), -1)
	if len(found) != 1 {
		t.Fatalf("%s is in the package comment %d times", pattern, len(found))
	}
	return found[0]
}

func TestDoc_sqlGivesTheSameKey(t *testing.T) {
	t.Parallel()
	conn := pgtest.Conn(t)
	line := documented(t, `SELECT \('x' .*;`)
	if got, want := number(t, conn, line), id(t, lockkey.Of("invoice", 42)); got != want {
		t.Errorf("text: %d, want %d", got, want)
	}

	text := regexp.MustCompile(`convert_to\(.*'UTF8'\)`)
	bytes := text.ReplaceAllLiteralString(line, documented(t, `decode\('.*?'hex'\)`))
	if got, want := number(t, conn, bytes), id(t, lockkey.Of("a\x00b")); got != want {
		t.Errorf("bytes: %d, want %d", got, want)
	}

	part := documented(t, `octet_length\(.*`)
	columns := text.ReplaceAllLiteralString(strings.TrimSuffix(line, ";"),
		"convert_to("+strings.ReplaceAll(part, "p", "name")+" || "+strings.ReplaceAll(part, "p", "id")+", 'UTF8')") +
		" FROM (VALUES ($1::text, $2::bigint)) AS invoice(name, id)"
	for _, name := range []string{"invoice", "", "日本語 😀", "a'b:\\"} {
		if got, want := number(t, conn, columns, name, -42), id(t, lockkey.Of(name, -42)); got != want {
			t.Errorf("columns %q, -42: %d, want %d", name, got, want)
		}
	}
}

func TestSQL_givesTheSameKey(t *testing.T) {
	t.Parallel()
	lists := map[string][]any{
		"strings":           {"invoice", "paid"},
		"integers":          {0, -1, int64(math.MinInt64), uint64(math.MaxUint64)},
		"string, integer":   {"invoice", 42},
		"Unicode":           {"naïve café", "日本語ロック", "😀", "e\u0301"},
		"empty part":        {""},
		"empty parts":       {"", "", ""},
		"NUL":               {"a\x00b", "\x00"},
		"invalid UTF-8":     {"\xff\xfe", []byte{0xed, 0xa0, 0x80}},
		"quotes":            {`it's`, `''`, `"`, `$$`},
		"backslashes":       {`\`, `\'`, `\x41`, `\\`},
		"digits and colons": {"1:a", "12", ":", "2:"},
		"control":           {"tab\tnewline\n\r\x1b"},
		"long":              {strings.Repeat("x", 100_000), strings.Repeat("é", 1000)},
		"formats":           {"%s", "$1", "?", "@name"},
	}
	for name, parts := range lists {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := pgtest.Conn(t)
			sql, err := lockkey.SQL(parts...)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := number(t, conn, "SELECT "+sql), id(t, lockkey.Of(parts...)); got != want {
				t.Errorf("%d, want %d", got, want)
			}
			if _, err := conn.Exec(t.Context(), "SET standard_conforming_strings = off"); err != nil {
				t.Fatal(err)
			}
			if got, want := number(t, conn, "SELECT "+sql), id(t, lockkey.Of(parts...)); got != want {
				t.Errorf("with standard_conforming_strings off: %d, want %d", got, want)
			}
		})
	}
}

func TestSQL_invalidPartsAreAnError(t *testing.T) {
	t.Parallel()
	for _, parts := range [][]any{{}, {nil}, {1.5}} {
		if sql, err := lockkey.SQL(parts...); !errors.Is(err, lockkey.ErrInvalid) || sql != "" {
			t.Errorf("%v: %q, %v", parts, sql, err)
		}
	}
}

// P23, K9: a bigint and the pair of its halves are two locks to PostgreSQL as
// they are to Compare.
func TestKey_spacesAreTheServers(t *testing.T) {
	t.Parallel()
	holder, rival := pgtest.Conn(t), pgtest.Conn(t)
	pair := pgtest.PairKey(t)
	hi, lo, _ := pair.Pair()
	whole := int64(hi)<<32 | int64(uint32(lo))
	for _, c := range []struct {
		conn *pgx.Conn
		sql  string
		args []any
		want bool
	}{
		{holder, "SELECT pg_try_advisory_lock($1, $2)", []any{hi, lo}, true},
		{rival, "SELECT pg_try_advisory_lock($1, $2)", []any{hi, lo}, false},
		{rival, "SELECT pg_try_advisory_lock($1)", []any{whole}, true},
		{rival, "SELECT pg_advisory_unlock($1)", []any{whole}, true},
		{holder, "SELECT pg_advisory_unlock($1, $2)", []any{hi, lo}, true},
	} {
		var got bool
		if err := c.conn.QueryRow(t.Context(), c.sql, c.args...).Scan(&got); err != nil || got != c.want {
			t.Errorf("%s %v: %v, %v, want %v", c.sql, c.args, got, err, c.want)
		}
	}
	if lockkey.Compare(pair, lockkey.Int64(whole)) == 0 {
		t.Error("Compare takes them for one lock")
	}
}
