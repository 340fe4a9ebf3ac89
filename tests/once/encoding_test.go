package once_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// Whatever the encodings of the database and of the session are, each call returns the same text, under any key.
func TestOnce_inAnyEncoding(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	admin := pgtest.Conn(t, pgtest.Through(server.DSN("postgres")))
	for database, encoding := range map[string]string{"in_latin1": "LATIN1", "in_ascii": "SQL_ASCII", "in_utf8": "UTF8"} {
		_, err := admin.Exec(t.Context(), "CREATE DATABASE "+database+" TEMPLATE template0 ENCODING '"+encoding+"' LC_COLLATE 'C' LC_CTYPE 'C'")
		stand.Must(t, err)
		var sessions []*gorm.DB
		utf8, escape := pgtest.Param("client_encoding", "UTF8"), pgtest.Param("bytea_output", "escape")
		for _, opts := range [][]pgtest.Option{
			{}, {utf8}, {pgtest.Param("client_encoding", "LATIN1")}, {escape}, {pgtest.PrepareStmt()},
			{pgtest.SimpleProtocol(), utf8}, {pgtest.SimpleProtocol(), utf8, escape}, // pgx refuses any other encoding there
		} {
			sessions = append(sessions, pgtest.Open(t, append(opts, pgtest.Plugin(gormlock.New()), pgtest.Through(server.DSN(database)))...))
		}
		stand.Must(t, gormlock.MigrateOnce(sessions[0]))
		for _, key := range []string{"order/1", "café/1"} {
			for first := range sessions {
				stand.Must(t, sessions[0].Exec("TRUNCATE gormlock_once").Error)
				for n := range sessions {
					sameResult(t, sessions[(first+n)%len(sessions)], key)
				}
			}
		}
	}
}

func sameResult(t *testing.T, db *gorm.DB, key string) {
	t.Helper()
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		got, err := gormlock.Once(tx, key, func(*gorm.DB) (string, error) { return "café ±1", nil }, gormlock.ForRequest("à 12 €"))
		if got != "café ±1" {
			t.Errorf("%s: %q", key, got)
		}
		return err
	}))
}

// A stored result that is not UTF-8 is an error. JSON would read other characters in place of what it does not know.
func TestOnce_storedTextThatIsNotUTF8(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	admin := pgtest.Conn(t, pgtest.Through(server.DSN("postgres")))
	_, err := admin.Exec(t.Context(), "CREATE DATABASE in_ascii TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'")
	stand.Must(t, err)
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Through(server.DSN("in_ascii")))
	stand.Must(t, gormlock.MigrateOnce(db))
	stand.Must(t, db.Exec(`INSERT INTO gormlock_once (key, result) VALUES ('k', convert_from('\x22636166e922', 'SQL_ASCII')::json)`).Error)
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		if got, err := gormlock.Once(tx, "k", func(*gorm.DB) (string, error) { return "", nil }); err == nil {
			t.Errorf("it is read as %q", got)
		}
		return nil
	}))
}
