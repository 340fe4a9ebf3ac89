package sqltext_test

import (
	"testing"

	"github.com/gormlock/gormlock/internal/sqltext"
)

func TestImplicitIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]sqltext.Implicit{
		"SELECT 1": sqltext.Nothing,
		"update a set b = 'it\\'s; DROP TABLE c'":   sqltext.Nothing,
		"INSERT INTO a VALUES ('; DROP TABLE c')":   sqltext.Nothing,
		"SELECT * FROM a WHERE b = '\\'; DROP c '":  sqltext.Nothing,
		"(SELECT 1) UNION (SELECT 2)":               sqltext.Nothing,
		"SAVEPOINT a":                               sqltext.Nothing,
		"":                                          sqltext.Nothing,
		"CREATE TABLE a (b int)":                    sqltext.Commits,
		" -- up\n drop table a":                     sqltext.Commits,
		"/* up */ALTER TABLE a ADD b int":           sqltext.Commits,
		"UPDATE a SET b = 1; TRUNCATE a":            sqltext.Commits,
		"LOCK TABLES a WRITE":                       sqltext.Commits,
		"CALL a()":                                  sqltext.Calls,
		"CREATE TABLE a (b int); call c();":         sqltext.Calls,
		"SELECT `drop`, \"create\" FROM `truncate`": sqltext.Nothing,
	} {
		if got := sqltext.ImplicitIn(text); got != want {
			t.Errorf("%s: got %d, want %d", text, got, want)
		}
	}
}
