package sqltext_test

import (
	"fmt"
	"testing"

	"github.com/gormlock/gormlock/gormlockvet/internal/sqltext"
)

func TestWrites(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"UPDATE accounts SET balance = 1":                                                    "[{1 accounts [balance] true}]",
		"update only public.accounts * set balance=1":                                        "[]",
		`UPDATE "Accounts" AS a SET "balance" = a.x, owner = f(b, c) WHERE x IN (SELECT 1)`:  "[{1 Accounts [balance owner] true}]",
		"UPDATE accounts a SET (balance, owner) = (1, 2), seen = now() RETURNING id":         "[{1 accounts [balance owner seen] true}]",
		"UPDATE accounts SET balance = (SELECT sum(x) FROM e WHERE e.id = 1), owner = 'x'":   "[{1 accounts [balance owner] true}]",
		"UPDATE \x00 SET balance = 1":                                                        "[]",
		"UPDATE app_\x00 SET balance = 1":                                                    "[]",
		"UPDATE accounts SET \x00 WHERE id = 1":                                              "[{1 accounts [] false}]",
		"UPDATE accounts SET a = \x00, b = 2 WHERE id = \x00":                                "[{1 accounts [a b] true}]",
		"UPDATE accounts SET a = b \x00 WHERE id = 1":                                        "[{1 accounts [a] false}]",
		"UPDATE accounts SET a = 1, \x00 = 2":                                                "[{1 accounts [a] false}]",
		"INSERT INTO accounts VALUES (1)":                                                    "[{2 accounts [] false}]",
		"INSERT INTO accounts (a, b) VALUES (1, 2) ON CONFLICT (a) DO UPDATE SET b = 2":      "[{2 accounts [a b] true} {3 accounts [b] true}]",
		"INSERT INTO accounts (a) VALUES (1) ON CONFLICT DO NOTHING; UPDATE people SET a=1":  "[{2 accounts [a] true} {1 people [a] true}]",
		"DELETE FROM ONLY accounts WHERE id = 1":                                             "[{4 accounts [] true}]",
		"WITH d AS (DELETE FROM a RETURNING *) INSERT INTO b (x) SELECT x FROM d":            "[{4 a [] true} {2 b [x] true}]",
		"MERGE INTO accounts USING s ON s.id = accounts.id WHEN MATCHED THEN UPDATE SET a=1": "[{1 accounts [a] true}]",
		"SELECT * FROM accounts FOR NO KEY UPDATE":                                           "[]",
		"SELECT * FROM accounts FOR UPDATE OF accounts":                                      "[]",
		"-- UPDATE accounts SET a = 1\nSELECT 1 /* DELETE FROM a */":                         "[]",
		"SELECT 'UPDATE accounts SET a = 1', $$ DELETE FROM a $$, $f$ x $f$":                 "[]",
		"CREATE TRIGGER t BEFORE INSERT OR UPDATE ON accounts EXECUTE FUNCTION f()":          "[]",
		"GRANT UPDATE ON accounts TO x":                                                      "[]",
		"UPDATE":                                                                             "[]",
		"UPDATE accounts":                                                                    "[]",
		"UPDATE accounts SET":                                                                "[{1 accounts [] false}]",
		"INSERT INTO":                                                                        "[]",
		"DELETE FROM":                                                                        "[]",
		"'":                                                                                  "[]",
		"$":                                                                                  "[]",
		"UPDATE accounts SET (a":                                                             "[{1 accounts [a] true}]",
	} {
		if got := fmt.Sprint(sqltext.Writes(text)); got != want {
			t.Errorf("%q:\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// No text, however broken, stops the reader.
func FuzzWrites(f *testing.F) {
	for _, text := range []string{"UPDATE a SET b = 1", "INSERT INTO a (b", "MERGE INTO a WHEN MATCHED THEN UPDATE SET", "$a$", "\"", "/*", "UPDATE a SET (\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, w := range sqltext.Writes(text) {
			if w.Table == "" {
				t.Errorf("%q: a write without a table", text)
			}
		}
		sqltext.Mentions(text, "version")
	})
}

func TestMentions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"WHERE version = 1": true, "WHERE Version = 1": true, "WHERE x = 'version'": false, "-- version": false, "versions": false, `"version"`: true,
	} {
		if got := sqltext.Mentions(text, "version"); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
