package sqltext_test

import (
	"slices"
	"testing"

	"github.com/gormlock/gormlock/internal/sqltext"
)

func TestSources(t *testing.T) {
	t.Parallel()
	wanted := func(name string) bool { return name == "version" || name == "Version" }
	for query, want := range map[string][]string{
		"SELECT * FROM a": {"a"},
		"SELECT x.version FROM ONLY shop.a AS x WHERE id IN (1, 2) FOR UPDATE":                                        {"shop.a"},
		`SELECT * FROM "a" LEFT JOIN b ON (b.id = a.id), c x WHERE a.n = (SELECT n FROM d) OR EXISTS (SELECT FROM e)`: {`"a"`, "b", "c"},
		`SELECT a.* FROM a JOIN b ON true WHERE lower(n) = now()::text`:                                               {"a"},
		`SELECT "a"."id", "a"."version" FROM "a" JOIN f(1) ON true`:                                                   {`"a"`},
		"SELECT id, n FROM v":                                                           nil,
		"SELECT n AS version, m FROM v":                                                 {"v"},
		"SELECT max(n), COALESCE(n, 0) AS version FROM a":                               {"a"},
		"SELECT version FROM a UNION (SELECT n FROM b ORDER BY (1))":                    {"a", "b"},
		"(SELECT 1) UNION SELECT version FROM (SELECT * FROM (b CROSS JOIN c)) AS q":    {"b", "c"},
		"WITH q AS (SELECT version FROM v) SELECT version FROM q":                       {"v"},
		"WITH q AS (SELECT * FROM v), p AS (SELECT id, version FROM q) TABLE p":         nil,
		"WITH q AS (SELECT * FROM v), p AS (SELECT id, version FROM q) SELECT * FROM p": {"v"},
		"WITH RECURSIVE q AS (SELECT * FROM v UNION SELECT q.* FROM q) SELECT * FROM q": {"v"},
		"SELECT q.version FROM (SELECT n AS version, m FROM a) AS q, b":                 {"a"},
		"SELECT version FROM (SELECT n, m FROM a) AS q (id, version)":                   {"a"},
		"SELECT a.version FROM a WHERE b IS DISTINCT FROM c.d.e":                        {"a"},
		"SELECT DISTINCT ON (a.id) a.version FROM a, v":                                 {"a"},
		"SELECT 1 AS version": nil,
		"SELECT m.version, (SELECT count(*) FROM v) AS n FROM m": {"m"},
	} {
		names, told := sqltext.Sources(query, wanted)
		slices.Sort(names)
		slices.Sort(want)
		if told == (want == nil && query[:4] == "WITH") || !slices.Equal(slices.Compact(names), want) {
			t.Errorf("%s: %q, told: %v; want %q", query, names, told, want)
		}
	}
	for _, query := range []string{
		"FETCH 1 FROM c", "TABLE a", "SELECT * FROM f(1)", "SELECT version FROM a, LATERAL (SELECT * FROM g(a.id)) AS x", "EXECUTE q",
		"SELECT * FROM ROWS FROM (f(1), g(2))", `SELECT * FROM U&"a"`, "UPDATE a SET n = 1 RETURNING *", "(TABLE a)", "SELECT (", `SELECT '\' FROM a`, "",
		"SELECT (SELECT version FROM v) AS version FROM t", "WITH q AS (UPDATE a SET n = 1 RETURNING *) SELECT * FROM q", "SELECT 1; SELECT version FROM a",
	} {
		if names, told := sqltext.Sources(query, wanted); told && query != "" {
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
	} {
		if !sqltext.ReadsInto(text, "version") {
			t.Errorf("%s: does not read a version", text)
		}
	}
	for _, text := range []string{
		"SELECT id FROM a WHERE version = 1", "SELECT id, version FROM a", "SELECT count(*) FROM (SELECT version FROM a) AS q", "SELECT count(version) FROM a",
		"SELECT CASE WHEN version > 0 THEN n END FROM a", "SELECT (SELECT count(*) FROM a WHERE version > 0)", "SELECT COALESCE(count(version), 0) FROM a",
		"UPDATE a SET version = 1", "UPDATE a SET version = 1 RETURNING id, version", "SELECT conversion FROM a", "SELECT 'version'", "",
	} {
		if sqltext.ReadsInto(text, "version") {
			t.Errorf("%s: reads a version", text)
		}
	}
}

func TestTarget(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"INSERT INTO a (n) VALUES (1)": "a", `update only "s"."a" set n = 1`: `"s"."a"`, "DELETE FROM a USING b": "a", "MERGE INTO a USING b ON true": "a", "UPDATE (": "",
	} {
		if name, writes := sqltext.Target(text); !writes || name != want {
			t.Errorf("%s: %q, %v", text, name, writes)
		}
	}
	for _, text := range []string{"SELECT 1", "WITH x AS (SELECT 1) UPDATE a SET n = 1", ""} {
		if name, writes := sqltext.Target(text); writes {
			t.Errorf("%s: %q", text, name)
		}
	}
}
