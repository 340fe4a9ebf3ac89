package sqltext

import "testing"

func TestMayDouble(t *testing.T) {
	t.Parallel()
	for query, may := range map[string]bool{
		`SELECT * FROM "orders"`:                                             false,
		`SELECT * FROM "orders" WHERE a * b > 1 ORDER BY id, note`:           false,
		`SELECT count(*), max(id) FROM a JOIN b ON true`:                     false,
		`SELECT a.id, a.n * 2 AS n FROM a, b`:                                false,
		`SELECT a.*, count(*) FROM a`:                                        true,
		`SELECT * FROM a JOIN b USING (id)`:                                  true,
		`SELECT * FROM a, b`:                                                 true,
		`SELECT * FROM a WHERE id IN (SELECT id FROM b, c)`:                  true,
		`select a.*, b.* from a natural join b`:                              true,
		`SELECT a.*, b.version FROM a`:                                       true,
		`SELECT b.version, a.* FROM a`:                                       true,
		`SELECT DISTINCT a.* FROM a, b`:                                      true,
		`SELECT DISTINCT ON (a.id) a.* FROM a LEFT JOIN b ON true`:           true,
		`SELECT * FROM (SELECT a.*, b.* FROM a CROSS JOIN b) AS x LIMIT 1`:   true,
		`WITH x AS (SELECT * FROM a JOIN b ON true) TABLE x`:                 true,
		`SELECT "s"."a".* FROM "s"."a" WHERE EXISTS (SELECT 1 FROM b)`:       false,
		`SELECT * FROM a WHERE note = ', b' FOR UPDATE`:                      false,
		`SELECT *, 2 AS version FROM a`:                                      true,
		`SELECT * FROM a WHERE x IN (1, 2)`:                                  false,
		`SELECT * FROM a WHERE EXISTS (SELECT * FROM b WHERE b.id = a.id)`:   false,
		`SELECT a.id, a.version, b.version FROM a JOIN b ON true`:            true,
		`SELECT a.id, b.version AS "of b" FROM a, b WHERE true`:              false,
		`SELECT a.version, b.version FROM a, b`:                              true,
		`SELECT id, version, (SELECT version FROM b) FROM a`:                 true,
		`SELECT id, version, (SELECT max(version) FROM b) AS last FROM a`:    false,
		`SELECT id, version, n AS version FROM a`:                            true,
		`SELECT id, version, n AS m FROM a`:                                  false,
		`SELECT id, version, n version FROM a`:                               true,
		`SELECT id, version, n "version" FROM a`:                             true,
		`SELECT id, version, (n) version FROM a`:                             true,
		`SELECT id, version, CASE WHEN n > 0 THEN n ELSE version END FROM a`: true,
		`SELECT id, version, CAST(version AS int) FROM a`:                    true,
		`SELECT id, version, lower(note) FROM a`:                             false,
		`SELECT "a"."id","a"."version" FROM "a" WHERE id = 1`:                false,
		`SELECT extract(year FROM at), id FROM a`:                            false,
		`UPDATE a SET n = 1 FROM b RETURNING *`:                              true,
		`UPDATE a SET n = 1 WHERE id = 1 RETURNING *`:                        false,
		`DELETE FROM a USING b RETURNING *`:                                  true,
		`DELETE FROM a WHERE id = 1 RETURNING *`:                             false,
		`INSERT INTO a (x, y) VALUES (1, 2) RETURNING *`:                     false,
		`UPDATE a SET n = 1 FROM b RETURNING a.*, b.version`:                 true,
		`SELECT a.version, b."Version" FROM a, b`:                            true,
		`SELECT a.lock_version, b.lockVersion FROM a, b`:                     true,
		`SELECT a.version, b.n AS "Ver" FROM a, b`:                           true,
		`SELECT DISTINCT a.version, b.n FROM a, b`:                           false,
		`SELECT ALL a.version, a.n FROM a, b`:                                false,
		`SELECT DISTINCT ON (a.n) n, a.n m FROM a, b`:                        false,
		`SELECT DISTINCT ON (a.n) a.id, max(a.n) FROM a, b`:                  false,
		`SELECT n IS DISTINCT FROM 1 x, a.version, b.version FROM a, b`:      true,
		`SELECT n IS NOT DISTINCT FROM m AS version, version FROM a`:         true,
		`SELECT a.version, b.version::text FROM a, b`:                        true,
		`SELECT a.version, (b.version) FROM a, b`:                            true,
		`SELECT a.version, (b.n::int) n FROM a, b`:                           false,
		`SELECT a.version, (b.n)::int FROM a, b`:                             true,
		`SELECT a.version, b.version[1] FROM a, b`:                           true,
		`SELECT a.version, b.version COLLATE "C" FROM a, b`:                  true,
		`SELECT a.version, version(b) FROM a, b`:                             true,
		`SELECT a.version, max(b.n), 1, 'x' FROM a, b`:                       false,
		`SELECT a.version, CASE WHEN true THEN (b.version) END FROM a, b`:    true,
		`SELECT a.version, count(*) FILTER (WHERE true) n FROM a, b`:         false,
		`SELECT (max(b.version)) FROM a, b`:                                  false,
		`FETCH 1 FROM c`:                                                     true,
		`EXECUTE all_of_them`:                                                true,
		`/* all */ ((select 1))`:                                             false,
		`SELECT * FROM unnest($1::int[], $2::int[]) AS u(id, version)`:       false,
	} {
		if got := MayDouble(query); got != may {
			t.Errorf("%s: %v", query, got)
		}
	}
}

func TestMayDouble_behindWith(t *testing.T) {
	t.Parallel()
	const with = "WITH x AS (SELECT basket_id, version FROM apples WHERE id = 7) SELECT "
	for _, query := range []string{
		with + "b.id, b.version, x.version FROM baskets b, x", with + "b.id, b.version, (SELECT version FROM x) FROM baskets b",
		with + "b.version, x.version AS \"Version\" FROM baskets b JOIN x ON true", with + "b.*, x.version FROM baskets b, x",
	} {
		if !MayDouble(query) {
			t.Errorf("%s: no two columns", query)
		}
	}
	if MayDouble(with + "b.id, b.version FROM baskets b, x") {
		t.Error("each column has a name of its own")
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	for text, reads := range map[string]bool{
		"SELECT * FROM a ; -- all":                      true,
		"(SELECT 1) UNION SELECT 2":                     true,
		"with x as (select 1) table x":                  true,
		"SELECT * FROM a FOR UPDATE":                    true,
		"SELECT * FROM a FOR NO KEY UPDATE":             true,
		"WITH x AS (DELETE FROM a RETURNING *) TABLE x": false,
		"UPDATE a SET n = 1 FROM b RETURNING *":         false,
		"SELECT 1; SELECT 2":                            false,
		"SELECT * INTO b FROM a":                        false,
		"":                                              false,
		"SELECT ')'":                                    true,
		"SELECT (1":                                     false,
	} {
		if got := Reads(text); got != reads {
			t.Errorf("%s: %v", text, got)
		}
	}
}
