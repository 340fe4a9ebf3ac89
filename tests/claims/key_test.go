package claims_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// typedTask has a key of any type, which reads as text.
type typedTask struct {
	K     string `gorm:"primaryKey"`
	State string
}

// A claim takes a key of any type, as the server has it.
func TestClaim_keyOfEachType(t *testing.T) {
	t.Parallel()
	for kind, value := range map[string]string{
		"text": "i::text", "char(10)": "i::text", "name": "i::text", "varchar(20)": "i::text", `text COLLATE "C"`: "i::text", "letters": "i::text",
		"uuid": "md5(i::text)::uuid", "bit(8)": "i::bit(8)", "bytea": "i::text::bytea", "inet": "('10.0.0.' || i)::inet",
		"macaddr": "('08:00:2b:01:02:' || lpad(to_hex(i), 2, '0'))::macaddr", "tsvector": "('w' || i)::tsvector", "jsonb": "to_jsonb(i)",
		"bigint": "i", "numeric": "i + 0.50", "float8": "CASE i WHEN 2 THEN 'nan' WHEN 3 THEN 'infinity' ELSE i::float8 END", "money": "i::money", "oid": "i::oid",
		`"char"`: `chr(64 + i)::"char"`, "date": "current_date + i", "timestamptz": "now() + i * interval '1 s'", "interval": "i * interval '1 h'",
		"int4range": "int4range(i, i + 1)", "int[]": "ARRAY[i, i + 1]", "text[]": "ARRAY[i::text]", "int[][]": "ARRAY[ARRAY[i, i], ARRAY[i, i]]",
		"oidvector": "i::text::oidvector", "numbers": "ARRAY[i]", "pair": "ROW(i, 'x')::pair", "pair[]": "ARRAY[ROW(i, 'x')::pair]", "like_pair": "ROW(i, 'x')::pair",
		"half": "ROW(NULL, i)::half",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			setup := stand.Open(t)
			for _, text := range []string{
				"CREATE DOMAIN letters AS text; CREATE DOMAIN numbers AS int[]; CREATE TYPE pair AS (a int, b text); CREATE DOMAIN like_pair AS pair; CREATE TYPE half AS (a int, b int)",
				"CREATE TABLE typed_tasks (k " + kind + " PRIMARY KEY, state text NOT NULL DEFAULT 'ready')",
				"CREATE VIEW typed_seen AS SELECT * FROM typed_tasks",
				"INSERT INTO typed_tasks (k) SELECT " + value + " FROM generate_series(1, 12) AS i",
			} {
				stand.MustDo(t, setup.Exec(text))
			}
			for _, mode := range [][]pgtest.Option{nil, {pgtest.SimpleProtocol()}} {
				db := stand.Open(t, mode...)
				for _, table := range []string{"typed_tasks", "typed_seen"} {
					for _, where := range []string{"state = 'ready'", "state = 'ready' AND (SELECT true)"} {
						for _, limit := range []int{5, 50} {
							stand.MustDo(t, setup.Exec("UPDATE typed_tasks SET state = 'ready'"))
							got := map[string]bool{}
							for range 12/min(limit, 12) + 1 {
								rows, err := gormlock.Claim[typedTask](db, limit, map[string]any{"state": "running"}, func(q *gorm.DB) *gorm.DB { return q.Table(table).Where(where).Order("k") })
								stand.Must(t, err)
								for _, row := range rows {
									got[row.K] = true
								}
							}
							if len(got) != 12 {
								t.Errorf("%d options, %s, %s, %d: %d rows", len(mode), table, where, limit, len(got))
							}
						}
					}
				}
			}
		})
	}
}
