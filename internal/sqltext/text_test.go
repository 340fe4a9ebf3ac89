package sqltext_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/internal/sqltext"
)

// said is a text's commands in short.
func said(t sqltext.Text) string {
	if t.Unsure {
		return "unsure"
	}
	verbs := [...]string{"", "begin", "commit", "rollback", "detach", "savepoint", "release", "rollback to"}
	var all []string
	for _, c := range t.Commands {
		s := verbs[c.Verb]
		if c.Verb >= sqltext.Savepoint {
			s += " " + c.Name
		}
		if c.Chain {
			s += " and chain"
		}
		all = append(all, s)
	}
	return strings.Join(all, "; ")
}

func TestRead_commands(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 62) + "é" + "tail" // the server cuts at 63 bytes, and not in a character
	for text, want := range map[string]string{
		"":                                  "",
		"SELECT 1":                          "",
		"SAVEPOINT a":                       "savepoint a",
		"savepoint A":                       "savepoint a",
		`SAVEPOINT "A ""b"" ; c"`:           `savepoint A "b" ; c`,
		"SAVEPOINT É":                       "savepoint É",
		"SAVEPOINT " + long:                 "savepoint " + long[:62],
		"SAVEPOINT a;":                      "savepoint a",
		";;SAVEPOINT a;;":                   "savepoint a",
		"/* x */ SAVEPOINT a":               "savepoint a",
		"/* x /* y; */ z */SAVEPOINT/**/a":  "savepoint a",
		"-- note; SAVEPOINT z\nSAVEPOINT a": "savepoint a",
		"SAVEPOINT -- note\r\n a -- more":   "savepoint a",
		"SAVEPOINT a /* x */":               "savepoint a",
		"\v\fSAVEPOINT\ta":                  "savepoint a",
		"SAVEPOINT savepoint":               "savepoint savepoint", //nolint:dupword // that is its name
		"RELEASE savepoint":                 "release savepoint",
		"RELEASE SAVEPOINT savepoint":       "release savepoint",
		"RELEASE a":                         "release a",
		`Release Savepoint "a"`:             "release a",
		"ROLLBACK TO a":                     "rollback to a",
		"ROLLBACK TO SAVEPOINT a":           "rollback to a",
		"ROLLBACK WORK TO SAVEPOINT a":      "rollback to a",
		"rollback transaction to a":         "rollback to a",
		`ROLLBACK TO U&"d\0061t"`:           "rollback to ",
		`SAVEPOINT U&"d!0061t" UESCAPE '!'`: "savepoint ",
		"ROLLBACK":                          "rollback",
		"ABORT":                             "rollback",
		"ROLLBACK WORK AND CHAIN":           "rollback and chain",
		"ROLLBACK AND NO CHAIN":             "rollback",
		"ABORT TRANSACTION AND CHAIN":       "rollback and chain",
		"COMMIT":                            "commit",
		"END":                               "commit",
		"END WORK AND CHAIN":                "commit and chain",
		"COMMIT AND CHAIN":                  "commit and chain",
		"COMMIT PREPARED 'a'":               "",
		"ROLLBACK PREPARED 'a'":             "",
		"PREPARE TRANSACTION 'a'":           "detach",
		"PREPARE transaction AS SELECT 1":   "",
		"PREPARE commit AS SELECT 1":        "",
		"BEGIN":                             "begin",
		"start transaction read only":       "begin",
		"COMMIT; BEGIN":                     "commit; begin",
		"SAVEPOINT b; UPDATE t SET x = 1; ROLLBACK TO b":         "savepoint b; rollback to b",
		"SELECT 'SAVEPOINT a; ROLLBACK'; RELEASE a":              "release a",
		"SELECT 'it''s; ROLLBACK'; RELEASE a":                    "release a",
		`SELECT E'it\'s; ROLLBACK'; RELEASE a`:                   "release a",
		"SELECT E'a'\n 'b\\'; ROLLBACK'; RELEASE a":              "release a",
		"SELECT e'a' 'b'; RELEASE a":                             "release a",
		"SELECT N'; ROLLBACK', B'1', X'; ', U&'; '; RELEASE a":   "release a",
		"SELECT $$; ROLLBACK; $$; RELEASE a":                     "release a",
		"SELECT $q$ $$; ROLLBACK; $$ $q$; RELEASE a":             "release a",
		"SELECT a$b$ FROM t; RELEASE a$b$":                       "release a$b$",
		"SELECT $1, $2; RELEASE a":                               "release a",
		`SELECT "; ROLLBACK"; RELEASE a`:                         "release a",
		"SELECT 1e5;RELEASE a":                                   "release a",
		"INSERT INTO t VALUES ('a'); SAVEPOINT a; DELETE FROM t": "savepoint a",
		"CREATE RULE r AS ON INSERT TO t DO (SELECT 1; COMMIT)":  "",
		"DO $x$ BEGIN COMMIT; END $x$":                           "",
		"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 1 END; END; SAVEPOINT a": "savepoint a", //nolint:dupword // SQL
		"create or replace procedure f() begin atomic select 1; end":                                                "",
		"CREATE TABLE begin (a int); RELEASE a":                                                                     "release a",
		`SELECT 'a\'; SELECT 'b'; RELEASE a`:                                                                        "release a",
		`SELECT 'a\'; RELEASE a; SELECT '`:                                                                          "",
		`SELECT '\', '; ROLLBACK; SELECT '\''`:                                                                      "unsure",
		`SELECT 'a\'''; RELEASE a`:                                                                                  "release a",
		`SELECT 'a\b'; RELEASE a`:                                                                                   "release a",
		"SELECT 'no end":                                                                                            "unsure",
		"/* no end":                                                                                                 "unsure",
		"SELECT $$ no end":                                                                                          "unsure",
	} {
		if got := said(sqltext.Read(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestRead_writes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`SELECT * FROM "accounts" WHERE id IN (1,2) AND (a OR b) ORDER BY "accounts"."id" LIMIT 1`: false,
		"SELECT count(*) FROM t":                                false,
		"SELECT * FROM t WHERE n = $1 FOR UPDATE":               false,
		"SELECT * FROM t FOR NO KEY UPDATE SKIP LOCKED":         false,
		"SELECT pg_advisory_xact_lock(5)":                       false,
		"(SELECT 1) UNION (SELECT 2)":                           false,
		"WITH a AS (SELECT 1) SELECT * FROM a":                  false,
		"SAVEPOINT a":                                           false,
		"ROLLBACK TO a; RELEASE a":                              false,
		"SET LOCAL lock_timeout = 5":                            false,
		"SHOW lock_timeout":                                     false,
		"-- nothing":                                            false,
		"SELECT 'UPDATE t'":                                     false,
		"SELECT transfer(1, 2)":                                 true,
		`SELECT "f"(1)`:                                         true,
		"SELECT * INTO t FROM u":                                true,
		"WITH a AS (UPDATE t SET x = 1 RETURNING *) SELECT 1":   true,
		"WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a": true,
		"EXPLAIN ANALYZE UPDATE t SET x = 1":                    true,
		"UPDATE t SET x = 1":                                    true,
		"/* x */ insert into t values (1)":                      true,
		"SELECT 1; DELETE FROM t":                               true,
		"EXECUTE p(1)":                                          true,
		"CALL p()":                                              true,
		"DO $$ BEGIN END $$":                                    true,
		"TRUNCATE t":                                            true,
		`SELECT 'a\'; SELECT f('`:                               true,
	} {
		if got := sqltext.Read(text).Writes; got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

//nolint:paralleltest // allocations can only be counted while nobody else allocates
func TestRead_allocatesNothing(t *testing.T) {
	for _, text := range []string{
		`UPDATE "accounts" SET "balance"=$1 WHERE id = 'a;b'`, `SELECT * FROM "accounts" WHERE id IN ($1,$2) LIMIT 1`, "INSERT INTO t VALUES (';')",
	} {
		if n := testing.AllocsPerRun(100, func() { _ = sqltext.Read(text) }); n != 0 {
			t.Errorf("%q: %v allocations", text, n)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{"SAVEPOINT a", "SELECT E'\\'; x", "$a$ $a$;COMMIT", "/* /* */", `U&"a" ; "`, "a$b$c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read := sqltext.Read(text)
		// A comment before it changes nothing.
		if more := sqltext.Read("/* ; /* ' */ */ " + text); fmt.Sprint(more) != fmt.Sprint(read) {
			t.Errorf("%+v, with a comment %+v", read, more)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	for name, text := range map[string]string{
		"update": `UPDATE "accounts" SET "balance"=$1,"version"="version"+1 WHERE "id" = $2 AND "version" = $3`,
		"select": `SELECT * FROM "accounts" WHERE "accounts"."id" = $1 ORDER BY "accounts"."id" LIMIT 1`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = sqltext.Read(text)
			}
		})
	}
}
