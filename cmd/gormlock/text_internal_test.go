package main

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestOneLine_movesNoCursor(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                          "",
		"select\n\t1 ":              "select 1",
		"\x1b[2Jgone":               `\x1b[2Jgone`,
		"a\x00b\x07":                `a\x00b\a`,
		"right\u202eleft":           `right\u202eleft`,
		"日本 語":                      "日本 語",
		"bad \xff":                  "bad \ufffd",
		"  lead":                    "lead",
		"\u009b31m eight bit":       `\u009b31m eight bit`,
		"<script>alert(1)</script>": "<script>alert(1)</script>",
	} {
		if got := oneLine(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestStatement_showsNoPassword(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		"ALTER ROLE a PASSWORD 's3cret'", "create user a with encrypted password 's3cret' login", "CREATE ROLE a PASSWORD E's3cret'",
		"SELECT dblink_connect('host=h user=u password=s3cret dbname=d')", "CREATE SUBSCRIPTION s CONNECTION 'postgres://u:s3cret@h/d' PUBLICATION p",
		"ALTER ROLE a PASSWORD\n  's3cret", "alter role a password 'with ''s3cret'' in it'", "SELECT 'password = s3cret'",
		"CREATE USER MAPPING FOR a SERVER s OPTIONS (user 'u', password 's3cret')", "SELECT 'postgres://u:a@s3cret@h/d'",
	} {
		if got := statement(query); strings.Contains(got, "s3cret") || !strings.Contains(got, "***") {
			t.Errorf("%s: %s", query, got)
		}
	}
	const harmless = "SELECT * FROM users WHERE id = 1 -- see https://example.com/a"
	if got := statement(harmless); got != harmless {
		t.Errorf("got %s", got)
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 999 * time.Millisecond: "0s", 59 * time.Second: "59s", time.Minute: "1m", 61 * time.Second: "1m1s",
		time.Hour: "1h", 90 * time.Minute: "1h30m", 24 * time.Hour: "1d", 49 * time.Hour: "2d1h", 1000 * time.Hour: "41d16h",
	} {
		if got := span(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 100000: "100,000", -1234567: "-1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	t.Parallel()
	known := []string{"ls", "watch", "why", "key", "doctor", "terminate", "cancel"}
	for word, want := range map[string]string{
		"lss": "ls", "wacth": "watch", "docter": "doctor", "termnate": "terminate", "cancle": "cancel", "xyzzy": "", "": "", "terminator": "terminate",
	} {
		got := didYouMean(word, known)
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestClip_countsNoColours(t *testing.T) {
	t.Parallel()
	if got := clip("\x1b[31mred\x1b[0m and", 3); got != "\x1b[31mred\x1b[0m\x1b[0m" {
		t.Errorf("%q", got)
	}
	if got := clip("日本語", 2); got != "日本\x1b[0m" {
		t.Errorf("%q", got)
	}
	if got := clip("short", 80); got != "short" {
		t.Errorf("%q", got)
	}
}

func TestParse_flagsStandAnywhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args, rest string
		json       bool
		name       string
	}{
		{"a b --json", "a b", true, ""},
		{"--json a --name=x b", "a b", true, "x"},
		{"a --name x -- --json", "a --json", false, "x"},
		{"-- --name x", "--name x", false, ""},
		{"-7 -name -8 -9", "-7 -9", false, "-8"},
		{"a - --json", "a -", true, ""},
		{"--json -- a --", "a --", true, ""},
	} {
		set := flag.NewFlagSet("test", flag.ContinueOnError)
		json, name := set.Bool("json", false, ""), set.String("name", "", "")
		rest, err := parse(set, strings.Fields(c.args))
		if err != nil || strings.Join(rest, " ") != c.rest || *json != c.json || *name != c.name {
			t.Errorf("%s: %q %v %q, %v", c.args, rest, *json, *name, err)
		}
	}
}

func TestLike(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"a*", "ab", true}, {"*b", "ab", true}, {"a*c", "abc", true}, {"a*b*c", "aXbXc", true},
		{"a*b*c", "acb", false}, {"*", "", true}, {"aa*aa", "aaa", false}, {"", "", true}, {"", "a", false}, {"*x*", "axb", true},
	} {
		if like(c.pattern, c.text) != c.want {
			t.Errorf("%s and %s", c.pattern, c.text)
		}
	}
}

// No piece of a password comes out, however broken the string that holds it is.
func TestDSN_whatIsWrongQuotesNothing(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://user:s3cr@t3t@host/db", "postgres://user:s3cr/t3t@host/db", "postgres://user:s3cr?t3t@host/db", "postgres://user:s3cr#t3t@host/db",
		"postgres://user:s3cr%t3t@host/db", "postgres://user:s3cr:t3t@host:t3t/db", "postgres://user:x@s3cr/t3t@host/db", "postgres://user:x@s3cr#t3t@host/db",
		"host=h password='s3cr t3t user=u", "password=s3cr t3t", "mysql://user:s3crt3t@host/db", "s3crt3t",
		"postgres://user:s3crt3t@host:99999/db", "postgres://user:s3crt3t@host/db?sslmode=t3t", "postgres://user:s3crt3t@host/db?connect_timeout=t3t",
		"postgres://user:s3crt3t@host/db?sslmode=verify-full&sslrootcert=/nonexistent", "postgres://user:s3crt3t@[host/db",
		"jdbc:postgresql://host/db?user=u&password=s3crt3t", "postgres://user:s3crt3t@host/db?target_session_attrs=t3t", "host=h password=s3crt3t port=t3t",
		"postgres://host/db?password=s3cr&t3t", "postgresql://u:s3crt3t@h:1,h:2,h:3/db?port=1,2", "postgres://h/db?service=nope&password=s3crt3t",
	} {
		c := target{dsn: dsn}
		_, err := c.config("test")
		if err == nil {
			if !strings.Contains(dsn, "?password=s3cr&") {
				t.Errorf("%s is accepted", dsn)
			}
			continue
		}
		for _, piece := range []string{"s3cr", "t3t", "%t"} {
			if strings.Contains(err.Error(), piece) {
				t.Errorf("%s: %v", dsn, err)
			}
		}
		if !strings.HasPrefix(err.Error(), "--dsn: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}

func TestDSN_whatIsRightIsRead(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"postgres://u:p%40s%2Fs@h:7/d":                     "u p@s/s h 7 d",
		"postgres://u@h/d?application_name=me@example.com": "u  h 5432 d",
		"postgres://u:p@h1:1,h2:2/d":                       "u p h1 1 d",
		"postgres://[::1]:7/d?user=u":                      "u  ::1 7 d",
		"host=h user=u password='a b' dbname=d port=7":     "u a b h 7 d",
		"postgres://u@/d?host=/run/postgresql":             "u  /run/postgresql 5432 d",
		"postgres://h:7/d?user=u&password=x@y":             "u x@y h 7 d",
	} {
		c, err := (&target{dsn: dsn}).config("test")
		if err != nil {
			t.Errorf("%s: %v", dsn, err)
			continue
		}
		if got := show(c); got != want {
			t.Errorf("%s: %s, want %s", dsn, got, want)
		}
	}
}

func show(c *pgx.ConnConfig) string {
	return strings.Join([]string{c.User, c.Password, c.Host, fmt.Sprint(c.Port), c.Database}, " ")
}

func TestDialProblem_isTheLastOfAll(t *testing.T) {
	t.Parallel()
	err := errors.Join(errors.New("first"), errors.Join(errors.New("second"), errors.New("third")))
	if got := dialProblem(err); got != "third" {
		t.Error(got)
	}
}
