package versions_test

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// person is a row of a table that no migration of GORM's has made. Its tags do not say which types the columns have.
type person struct {
	ID      int64
	Name    string
	Born    time.Time
	Woke    time.Time
	Seen    time.Time
	Host    string
	Country string
	Mood    string
	Data    string
}

// What was read is unchanged, whatever type its column has on the server.
func TestIfUnchanged_ofColumnsWhoseTypesNoTagNames(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"UTC", "PRC", "EST5EDT"} {
		for _, mode := range []string{"cache_statement", "cache_describe", "exec", "simple_protocol"} {
			t.Run(zone+"/"+mode, func(t *testing.T) {
				t.Parallel()
				db := stand.Open(t, pgtest.Param("TimeZone", zone), pgtest.Param("default_query_exec_mode", mode))
				stand.MustDo(t, db.Exec("DROP TABLE IF EXISTS people"))
				stand.MustDo(t, db.Exec("DROP TYPE IF EXISTS mood"))
				stand.MustDo(t, db.Exec("CREATE TYPE mood AS ENUM ('sad', 'glad')"))
				stand.MustDo(t, db.Exec(`CREATE TABLE people (id serial PRIMARY KEY, name text NOT NULL, born date, woke timestamp(3), seen timestamptz,
					host inet, country char(3), mood mood, data jsonb)`))
				stand.MustDo(t, db.Exec(`INSERT INTO people VALUES (1, 'a', '2000-01-01', '2000-01-01 00:30:00.123', '2000-01-01 00:30:00.123456+00',
					'10.0.0.1', 'DE', 'glad', '{"b": 1, "a": [2]}')`))
				for column, other := range map[string]string{
					"born": "2000-01-02", "woke": "2000-01-01 00:30:00.124", "seen": "2000-01-01 00:30:00.123457+00",
					"host": "10.0.0.2", "country": "D", "mood": "sad", "data": `{"b": 1}`,
				} {
					if column == "born" && zone != "UTC" {
						continue // GORM takes it for a timestamptz: docs/version-limits.md
					}
					read := stand.Row[person](t, db, 1)
					before := read
					if err := db.Model(&read).Clauses(gormlock.IfUnchanged(&before, column)).Update("name", "b").Error; err != nil {
						t.Errorf("%s: %v", column, err)
					}
					before = stand.Row[person](t, db, 1)
					stand.MustDo(t, db.Exec("UPDATE people SET "+column+" = '"+other+"'"))
					stand.MustStale(t, db.Model(&read).Clauses(gormlock.IfUnchanged(&before, column)).Update("name", "c").Error)
				}
			})
		}
	}
}

// shouted has texts that the server calls equal whatever the case of their letters is.
type shouted struct {
	ID   int64
	Name string
	S    string
	T    sql.NullString
	N    sql.Null[string]
	P    *string
}

func TestIfUnchanged_ofTextsInOtherLetters(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	stand.MustDo(t, db.Exec("CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"))
	stand.MustDo(t, db.Exec("CREATE TABLE shouteds (id serial PRIMARY KEY, name text NOT NULL, "+
		"s text COLLATE loose, t text COLLATE loose, n text COLLATE loose, p text COLLATE loose)"))
	stand.MustDo(t, db.Exec("INSERT INTO shouteds VALUES (1, 'x', 'a', 'a', 'a', 'a')"))
	for _, column := range []string{"s", "t", "n", "p"} {
		read := stand.Row[shouted](t, db, 1)
		before := read
		stand.MustDo(t, db.Model(&read).Clauses(gormlock.IfUnchanged(&before, column)).Update("name", "y"))
		stand.MustDo(t, db.Exec("UPDATE shouteds SET "+column+" = 'A'"))
		stand.MustStale(t, db.Model(&read).Clauses(gormlock.IfUnchanged(&before, column)).Update("name", "z").Error)
	}
}

// enciphered writes itself, an empty one too.
type enciphered string

func (s enciphered) Value() (driver.Value, error) { return "sealed:" + string(s), nil }

func (s *enciphered) Scan(from any) error {
	*s = enciphered(strings.TrimPrefix(fmt.Sprint(from), "sealed:"))
	return nil
}

type letter struct {
	ID    int64
	Title string
	Text  enciphered
}

func TestIfUnchanged_ofTextsThatWriteThemselves(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&letter{}})
	stand.Made(t, db, letter{Title: "a"})
	read := stand.Row[letter](t, db, 1)
	before := read
	stand.MustDo(t, db.Model(&read).Clauses(gormlock.IfUnchanged(&before, "text")).Update("title", "b"))
	stand.MustDo(t, db.Exec("UPDATE letters SET text = 'sealed:x'"))
	stand.MustStale(t, db.Model(&read).Clauses(gormlock.IfUnchanged(&before, "text")).Update("title", "c").Error)
}
