package transactions_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/sqltext"
)

// G30: what is read in a text is what the server says it did, by the tags of its answers.
//
//nolint:dupword // SQL
func TestG30_CommandTags(t *testing.T) {
	t.Parallel()
	conn := pgtest.Conn(t, pgtest.Schema())
	if _, err := conn.Exec(t.Context(), "CREATE TABLE accounts (balance int)"); err != nil {
		t.Fatal(err)
	}
	texts := []string{
		"CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 1 END; END; SAVEPOINT z",
		"CREATE RULE r AS ON INSERT TO accounts DO ALSO (SELECT 1; SELECT 2); RELEASE z",
		"DO $x$ BEGIN PERFORM 1; END $x$; SAVEPOINT z", "START TRANSACTION READ WRITE", "PREPARE commit AS SELECT 1",
		"SELECT 'a\\'; SAVEPOINT y; SELECT ''", "SELECT E'a'\n'\\'; COMMIT'; SELECT U&'\\0061' UESCAPE '!', N';'",
		"SELECT 1 AS \"x; COMMIT\", $a$;$b$;$a$; SELECT balance-- ; COMMIT\n FROM accounts", "SELECT 2/*/* ; */ COMMIT */;;; SAVEPOINT x",
	}
	for _, s := range spellings {
		texts = append(texts, slices.DeleteFunc(slices.Clone(s.texts), func(text string) bool { return text == write })...)
		texts = append(texts, "ROLLBACK; BEGIN")
	}
	if _, err := conn.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		results, err := conn.PgConn().Exec(t.Context(), text).ReadAll()
		if err != nil {
			t.Fatal(text, err)
		}
		var said, read []string
		for _, result := range results {
			tag := result.CommandTag.String()
			switch tag {
			case "START TRANSACTION":
				tag = "BEGIN"
			case "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE":
			default:
				continue
			}
			said = append(said, tag)
		}
		for _, command := range sqltext.Read(text).Commands {
			read = append(read, [...]string{"", "BEGIN", "COMMIT", "ROLLBACK", "PREPARE TRANSACTION", "SAVEPOINT", "RELEASE", "ROLLBACK"}[command.Verb])
		}
		if !slices.Equal(said, read) {
			t.Errorf("%q: the server did %s, read was %s", text, strings.Join(said, ", "), strings.Join(read, ", "))
		}
	}
}
