package sqltext_test

import (
	"slices"
	"testing"

	"github.com/gormlock/gormlock/internal/sqltext"
)

func TestSources(t *testing.T) {
	t.Parallel()
	for query, want := range map[string][]string{
		"SELECT * FROM a": {"a"},
		"SELECT x.version FROM ONLY shop.a AS x WHERE id IN (1, 2) FOR UPDATE":                                        {"shop.a"},
		`SELECT * FROM "a" LEFT JOIN b ON (b.id = a.id), c x WHERE a.n = (SELECT n FROM d) OR EXISTS (SELECT FROM e)`: {`"a"`, "b", "c", "d", "e"},
		"SELECT (SELECT version FROM v) AS version FROM t":                                                            {"v", "t"},
		"SELECT version FROM a UNION (SELECT version FROM b ORDER BY (1))":                                            {"a", "b"},
		"(SELECT 1) UNION SELECT version FROM (SELECT * FROM (b CROSS JOIN c)) AS q":                                  {"b", "c"},
		"WITH q AS (SELECT version FROM v) SELECT version FROM q":                                                     {"v", "q"}, // which no table is called
		"SELECT a.from FROM a WHERE b IS DISTINCT FROM c":                                                             {"a", "c"},
		"SELECT 1 AS version; SELECT version FROM a":                                                                  {"a"},
		"SELECT 1 AS version": nil,
	} {
		names, told := sqltext.Sources(query)
		slices.Sort(names)
		slices.Sort(want)
		if !told || !slices.Equal(slices.Compact(names), want) {
			t.Errorf("%s: %q, told: %v; want %q", query, names, told, want)
		}
	}
	for _, query := range []string{
		"FETCH 1 FROM c", "TABLE a", "SELECT * FROM f(1)", "SELECT version(1) FROM a", "SELECT * FROM a, LATERAL (SELECT g(a.id)) AS x", "EXECUTE q",
		"SELECT * FROM ROWS FROM (f(1), g(2))", `SELECT * FROM U&"a"`, "UPDATE a SET n = 1 RETURNING *", "(TABLE a)", "SELECT (", `SELECT '\' FROM a`, "",
	} {
		if names, told := sqltext.Sources(query); told {
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
		"UPDATE a SET version = 1", "UPDATE a SET version = 1 RETURNING id, version", "SELECT conversion FROM a", "SELECT 'version'", "",
	} {
		if sqltext.ReadsInto(text, "version") {
			t.Errorf("%s: reads a version", text)
		}
	}
}
