package sqltext_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gormlock/gormlock/internal/sqltext"
)

func TestSources(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		// The columns are of one table alone.
		"SELECT * FROM a": "a",
		"SELECT x.version FROM ONLY shop.a AS x WHERE id IN (1, 2) AND EXISTS (SELECT FROM b) FOR UPDATE": ".a shop .version x",
		`SELECT "a"."id", a."Version" AS v, A.* FROM "a" LEFT JOIN b ON (b.id = a.id), c x`:               ".Version a .id v",
		"select distinct n, m from a x order by f(n)":                                                     "a m n",
		"SELECT n FROM a;": "a n",
		`SELECT a.version FROM a, b WHERE a.from IS DISTINCT FROM c.d.e`: "a .version",
		"SELECT a.f FROM a NATURAL JOIN b":                               "a .f",
		// What is not so simple: all names.
		"SELECT * FROM a JOIN b ON true":                                  "a b true",
		"SELECT a.n, b.n FROM a, b":                                       "a b .n",
		"SELECT n FROM a, b":                                              "a b n",
		"SELECT u.version FROM a JOIN b USING (version) AS u":             "a b u using .version version",
		"SELECT DISTINCT ON (a.id) a.version FROM a, v":                   "a .version",
		"SELECT m.version FROM m (version) WHERE EXISTS (SELECT FROM b)":  "b exists m .version version",
		"SELECT max(n), COALESCE(n, 0) AS version FROM a":                 "a coalesce max n version",
		"SELECT n FROM a UNION (SELECT n FROM b ORDER BY (1))":            "a b by n union",
		"WITH q(c) AS (SELECT version FROM v) SELECT c AS version FROM q": "c q v version",
		"SELECT m.version, (SELECT count(*) FROM v) AS n FROM m":          "count m n v .version",
		"SELECT l.version FROM a, LATERAL (SELECT a.version) l":           "a l lateral .version",
		"VALUES ((SELECT version FROM a))":                                "a values version",
		"UPDATE a SET n = b.n FROM b RETURNING b.version":                 "a b n .n set update .version",
		"INSERT INTO a SELECT * FROM b RETURNING *":                       "a b insert",
		"((SELECT version FROM b)) /* FROM c */ -- d":                     "b version",
		"SELECT rows.n FROM rows FROM (f(1), g(2))":                       "f g .n rows",
		"SELECT a.n FROM a TABLESAMPLE f(1)":                              "a .n",
		"SELECT 1 AS version":                                             "version",
		"":                                                                "-",
	} {
		names, told := sqltext.Sources(query, nil)
		slices.SortFunc(names, func(a, b string) int { return strings.Compare(strings.TrimPrefix(a, "."), strings.TrimPrefix(b, ".")) })
		if got := strings.Join(names, " "); told != (want != "-") || told && got != want {
			t.Errorf("%s: %q, told: %v; want %q", query, got, told, want)
		}
	}
	for _, query := range []string{
		"FETCH 1 FROM c", "TABLE a", "EXECUTE q", `SELECT * FROM U&"a"`, "(TABLE a", "SELECT (", `SELECT '\' FROM a`, "SELECT 1; SELECT version FROM a", "CALL f()", "SHOW version",
	} {
		if names, told := sqltext.Sources(query, nil); told {
			t.Errorf("%s: told %q", query, names)
		}
	}
}

func TestReadsInto(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"SELECT version FROM a", `select a."version" AS n FROM a WHERE id = 1`, "/* x */ SELECT DISTINCT Version FROM a", "SELECT version::bigint FROM a",
		"SELECT COALESCE(version, 0) FROM a", "SELECT max(version) FROM a", "WITH w AS (SELECT 1, 2) SELECT version FROM a", "(SELECT version FROM a)",
		"UPDATE a SET n = 1, m = 2 RETURNING version", "WITH w AS (UPDATE a SET n = 1 RETURNING id, version) SELECT version FROM w",
		"SELECT (SELECT version FROM b LIMIT 1)", "SELECT v FROM (SELECT id, version AS v FROM a) AS q", "((SELECT version FROM a) UNION SELECT 1)",
		"SELECT CASE WHEN n > 0 THEN version ELSE 0 END FROM a", "SELECT CASE WHEN n > 0 THEN version ELSE -1 END FROM a", "SELECT CASE n WHEN 1 THEN (version) END AS n FROM a", "SELECT CAST(version AS int) FROM a",
		"SELECT pg_catalog.int8(version) FROM a", "SELECT first_value(version) OVER (ORDER BY id) FROM a", "SELECT w FROM (SELECT v AS w FROM (SELECT version AS v FROM a) p) q",
		"SELECT b FROM (SELECT id, version FROM a) q (x, b)", "WITH q (x, b) AS (SELECT id, version FROM a) SELECT b FROM q", "SELECT max FROM (SELECT max(version) FROM a) q",
		"SELECT 1 UNION SELECT version FROM a", "SELECT 1 UNION ALL (SELECT version FROM a LIMIT 1)", "SELECT * FROM (SELECT version FROM a) q", "SELECT version FROM a;",
		"SELECT coalesce((SELECT version FROM a), 0)", "SELECT DISTINCT ON (id) version FROM a", "SELECT version FROM a FOR UPDATE", "DELETE FROM a RETURNING max(version)",
		"INSERT INTO a SELECT * FROM b RETURNING version", "SELECT (version",
	} {
		if !sqltext.ReadsInto(text, "version") {
			t.Errorf("%s: does not read a version", text)
		}
	}
	for _, text := range []string{
		"SELECT id FROM a WHERE version = 1", "SELECT id, version FROM a", "SELECT count(*) FROM (SELECT version FROM a) AS q", "SELECT count(version) FROM a",
		"SELECT CASE WHEN version > 0 THEN n END FROM a", "SELECT (SELECT count(*) FROM a WHERE version > 0)", "SELECT COALESCE(count(version), 0) FROM a",
		"UPDATE a SET version = 1", "UPDATE a SET version = 1 RETURNING id, version", "SELECT conversion FROM a", "SELECT 'version'", "",
		"WITH w AS (SELECT id, version, n FROM a) SELECT sum(n)::bigint FROM w", "SELECT s.id FROM (SELECT id, version FROM a WHERE d IS NULL) s",
		"SELECT r FROM (SELECT id, rank() OVER (ORDER BY version) AS r FROM a) s", "SELECT EXISTS (SELECT version FROM a)::int", "SELECT (version > 0)::int FROM a",
		"SELECT id FROM a WHERE version = (SELECT max(version) FROM a)", "SELECT id FROM a ORDER BY version DESC LIMIT 1", "SELECT count(DISTINCT version) FROM a",
		"SELECT count(*) FROM b JOIN (SELECT id, version FROM a) o ON o.id = b.id", "SELECT id FROM b WHERE id IN (SELECT version FROM a) OR true",
		"INSERT INTO b (n) SELECT 'v' || version FROM a RETURNING id", "UPDATE a SET n = 3 WHERE version > 0 RETURNING id", "SELECT length(version::text) FROM a",
		"SELECT array_length(array_agg(version), 1) FROM a", "SELECT count(*) FILTER (WHERE version > 0) FROM a", "SELECT sum(CASE WHEN version > 0 THEN 1 ELSE 0 END) FROM a",
		"SELECT sum(version - 1) + 100 FROM a", "SELECT -version FROM a", "SELECT row_number() OVER (ORDER BY version) FROM a LIMIT 1", "SELECT id % 7 FROM a WHERE version IS NOT NULL",
		"SELECT version(id) FROM a", "SELECT version.id FROM version", "SELECT x FROM (SELECT id, version FROM a) q (x, b)", "SELECT id AS version2 FROM (SELECT version FROM a) q",
		"INSERT INTO a SELECT version FROM b", "SELECT n FROM (SELECT n, version FROM a FOR UPDATE) q", "TABLE a",
	} {
		if sqltext.ReadsInto(text, "version") {
			t.Errorf("%s: reads a version", text)
		}
	}
}

func FuzzSources(f *testing.F) {
	for _, text := range []string{
		"SELECT a.n, b.n FROM a NATURAL JOIN b", "WITH q (x, b) AS (SELECT id, version FROM a) SELECT b FROM q", "((SELECT version FROM a) UNION SELECT 1)",
		"SELECT CASE n WHEN 1 THEN (version) END FROM (SELECT max(version)) AS n (version)", "INSERT INTO a SELECT * FROM b RETURNING version", ")(", "SELECT DISTINCT ON (",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		names, _ := sqltext.Sources(text, nil)
		if utf8.ValidString(text) && slices.ContainsFunc(names, func(name string) bool { return strings.Trim(name, ".") == "" }) && !strings.Contains(text, `""`) && !strings.Contains(text, "``") {
			t.Errorf("a name without letters: %q", names)
		}
		sqltext.ReadsInto(text, "version")
	})
}
