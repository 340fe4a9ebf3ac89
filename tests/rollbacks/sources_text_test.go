package rollbacks_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// rowTexts return the row of an account. Which table the version is of shows in few of them.
var rowTexts = []string{
	"SELECT a.id, l.version FROM accounts a CROSS JOIN LATERAL (SELECT a.version, a.note) l",
	"SELECT a.id, l.version FROM accounts a CROSS JOIN LATERAL (VALUES (a.version, a.note)) l(version, note)",
	"SELECT v.* FROM (VALUES ((SELECT id FROM accounts), (SELECT version FROM accounts))) v(id, version)",
	"SELECT l.* FROM memos m JOIN LATERAL (SELECT * FROM account_view a WHERE a.id = m.account_id LIMIT 1) l ON true",
	"SELECT l.id, l.version FROM accounts a, LATERAL (SELECT a.id, a.version + 0 AS version FROM memos LIMIT 1) l",
	"SELECT a.id, u.version FROM account_view a, unnest(ARRAY[a.version]) AS u(version)",
	"UPDATE memos SET version = 7 FROM account_view v WHERE v.id = memos.account_id RETURNING v.id, v.version",
	"DELETE FROM memos USING account_view v WHERE v.id = memos.account_id RETURNING v.id, v.version",
	"INSERT INTO memos (id, account_id, version) SELECT 2, id, version FROM account_view RETURNING account_id AS id, version",
	"UPDATE memos SET version = 7 RETURNING account_id AS id, (SELECT max(version) FROM account_view) AS version",
	"WITH w AS (UPDATE memos SET version = 7 RETURNING account_id) SELECT v.id, v.version FROM account_view v JOIN w ON w.account_id = v.id",
	"SELECT (json_populate_record(null::accounts, row_to_json(a))).id, (json_populate_record(null::accounts, row_to_json(a))).version FROM accounts a",
	"SELECT (v).id, (v).version FROM account_view v",
	"SELECT (s.a).* FROM (SELECT a FROM accounts a) s",
	"SELECT r.* FROM (SELECT (x.v).* FROM (SELECT v FROM account_view v) x) r",
	"SELECT v.id, v.version FROM account_view v JOIN memos m ON m.account_id = v.id",
	"SELECT id, version FROM (SELECT 1 AS one) m NATURAL JOIN (SELECT id, version FROM account_view) x",
	"SELECT v.id, version FROM account_view v FULL JOIN (SELECT version FROM account_view) z USING (version)",
	"SELECT v.id, u.version FROM account_view v JOIN (SELECT version FROM account_view) z USING (version) AS u",
	"SELECT x.a AS id, x.b AS version FROM (SELECT id, version FROM account_view) x(a, b)",
	"WITH x(a, b) AS (SELECT id, version FROM account_view) SELECT a AS id, b AS version FROM x",
	"WITH memos AS (SELECT id, version FROM account_view) SELECT id, version FROM memos",
	"WITH x AS MATERIALIZED (SELECT id, version FROM account_view) SELECT id, version FROM x",
	"SELECT id, CASE WHEN true THEN version END AS version FROM account_view",
	"SELECT id, version::bigint FROM account_view",
	"SELECT id, pg_catalog.int8(version) AS version FROM account_view",
	"SELECT id, max(version) AS version FROM account_view GROUP BY 1",
	"SELECT id, first_value(version) OVER () AS version FROM account_view",
	"SELECT id, version FROM memos WHERE false UNION ALL SELECT id, version FROM account_view",
	"SELECT id, version FROM account_view UNION ALL (VALUES (0, 0) LIMIT 0)",
	`SELECT "id", "version" FROM "account_view"`,
	"SELECT id, version FROM /* memos */ account_view -- memos\n",
	"SELECT id, version FROM account_view;",
	"SELECT set.id, set.version FROM set",
	"SELECT by.* FROM (SELECT 1) one, by",
	`SELECT id, version FROM {far}.far_view`,
	`SELECT * FROM ONLY {far}."far_view" f`,
	"SELECT f.id, f.version FROM {far} . far_rows() f",
	"SELECT f.* FROM memos m, account_rows() f",
	"SELECT m.account_id AS id, m.account_version AS version FROM memos m",
	"TABLE account_view",
	"SELECT id, version FROM accounts TABLESAMPLE SYSTEM (100)",
	"SELECT id, version FROM ONLY accounts_part",
	"SELECT id, (SELECT z.version FROM (SELECT y.version UNION ALL SELECT 1) z LIMIT 1) AS version FROM account_view y",
	"WITH RECURSIVE w AS (SELECT id, version, 1 AS n FROM account_view UNION ALL SELECT id, version, n + 1 FROM w WHERE n < 2) SELECT id, version FROM w WHERE n = 2",
	"SELECT id, extract(epoch FROM now()) AS e, version FROM account_view",
	"SELECT id, note IS DISTINCT FROM 'x' AS d, version FROM account_view WHERE version BETWEEN 1 AND 9",
	"SELECT (xpath('//id/text()', x))[1]::text::bigint AS id, (xpath('//version/text()', x))[1]::text::bigint AS version FROM query_to_xml('SELECT * FROM accounts', true, false, '') x",
}

// What a text returns is of the tables that its names stand for. A rollback reaches the form that it was read into, by Scan and by Find.
func TestRollback_ofWhatATextReturns(t *testing.T) {
	t.Parallel()
	for _, text := range rowTexts {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			db, rival := withSources(t)
			var here string
			stand.MustDo(t, db.Raw("SELECT current_schema()").Scan(&here))
			far := here + "_far"
			text = strings.ReplaceAll(text, "{far}", far)
			t.Cleanup(func() { db.Exec("DROP SCHEMA " + far + " CASCADE") })
			for _, sql := range []string{
				"CREATE VIEW set AS SELECT * FROM accounts", "CREATE VIEW by AS SELECT * FROM accounts",
				"CREATE SCHEMA " + far, "CREATE VIEW " + far + ".far_view AS SELECT * FROM accounts",
				"CREATE FUNCTION " + far + ".far_rows() RETURNS SETOF accounts LANGUAGE sql STABLE AS 'SELECT * FROM " + here + ".accounts'",
				"CREATE FUNCTION account_version(memos) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT version FROM accounts'",
			} {
				stand.MustDo(t, db.Exec(sql))
			}
			for name, read := range map[string]func(tx *gorm.DB, form *balanceOf) *gorm.DB{
				"Scan": func(tx *gorm.DB, form *balanceOf) *gorm.DB { return tx.Raw(text).Scan(form) },
				"Find": func(tx *gorm.DB, form *balanceOf) *gorm.DB { return tx.Raw(text).Find(form) },
			} {
				var form balanceOf
				if err := db.Transaction(func(tx *gorm.DB) error {
					stand.MustDo(t, tx.Exec("UPDATE accounts SET version = version + 1"))
					stand.MustDo(t, read(tx, &form))
					return errUndo
				}); !errors.Is(err, errUndo) {
					t.Fatal(err)
				}
				stand.MustDo(t, db.Model(&rival).Update("balance", 55))
				if err := byForm(&form)(db); !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing) {
					t.Errorf("%s: written over %+v by %+v: %v", name, rival, form, err)
				}
			}
		})
	}
}

// A number that is counted, chosen or computed by a version, and is none itself, stays as it was read.
func TestRollback_leavesOtherNumbers(t *testing.T) {
	t.Parallel()
	db, _ := withSources(t)
	for _, text := range []string{
		"SELECT id FROM accounts WHERE version = (SELECT max(version) FROM accounts)", "SELECT id FROM (SELECT id, version FROM accounts) a",
		"WITH w AS (SELECT version, balance FROM accounts) SELECT sum(balance + 7)::bigint FROM w", "SELECT count(version) FROM accounts",
		"SELECT r FROM (SELECT rank() OVER (ORDER BY version) AS r FROM accounts) s", "SELECT (version > 0)::int FROM accounts",
		"INSERT INTO memos (id, account_id, version) SELECT 9, id, version FROM accounts RETURNING account_id", "SELECT length(version::text) FROM accounts",
	} {
		for name, read := range map[string]func(tx *gorm.DB, n *int64) *gorm.DB{
			"Scan": func(tx *gorm.DB, n *int64) *gorm.DB { return tx.Raw(text).Scan(n) },
			"Find": func(tx *gorm.DB, n *int64) *gorm.DB { return tx.Raw(text).Find(n) },
		} {
			var n, was int64
			_ = db.Transaction(func(tx *gorm.DB) error {
				stand.MustDo(t, tx.Exec("UPDATE accounts SET version = version + 1"))
				stand.MustDo(t, read(tx, &n))
				was = n
				return errUndo
			})
			if n != was || n <= 0 {
				t.Errorf("%s by %s: %d is %d after the rollback", text, name, was, n)
			}
		}
	}
}
