package sqltext

import "testing"

func TestIsRepeated(t *testing.T) {
	t.Parallel()
	for query, is := range map[string]bool{
		`SELECT *, id FROM a`: true,
		`SELECT *, "a"."id" FROM "a" WHERE n = $1 ORDER BY id LIMIT 1`:                 true,
		`SELECT id, * FROM s.a AS x`:                                                   true,
		`SELECT DISTINCT ON (a.id, a.n) a.id, a.* FROM a JOIN b ON b.a_id = a.id`:      true,
		`SELECT DISTINCT a.*, A.ID FROM a, b`:                                          true,
		`SELECT ALL a.*, s.a.id FROM s.a JOIN b ON true`:                               true,
		`SELECT *, x.id FROM (SELECT * FROM a JOIN b USING (id)) AS x`:                 true,
		`SELECT *, id FROM a WHERE n IN (SELECT n FROM b UNION SELECT 1)`:              true,
		`SELECT *, n IS DISTINCT FROM m AS x, id FROM a`:                               true,
		`SELECT * FROM a JOIN b ON true`:                                               false,
		`SELECT a.*, b.* FROM a JOIN b ON true`:                                        false,
		`SELECT a.*, b.id FROM a JOIN b ON true`:                                       false,
		`SELECT a.*, id FROM a JOIN b ON true`:                                         false,
		`SELECT *, a.id FROM a JOIN b ON true`:                                         false,
		`SELECT *, a.id FROM a, b`:                                                     false,
		`SELECT *, b.id FROM (a LEFT JOIN b USING (id))`:                               false,
		`SELECT s.a.*, t.a.id FROM s.a JOIN t.a ON true`:                               false,
		`SELECT s.a.*, a.id FROM s.a JOIN b ON true`:                                   true,
		`SELECT *, n AS id FROM a`:                                                     false,
		`SELECT *, n id FROM a`:                                                        false,
		`SELECT *, n + id FROM a`:                                                      false,
		`SELECT *, -id FROM a`:                                                         false,
		`SELECT *, id::text FROM a`:                                                    false,
		`SELECT *, (SELECT id FROM b) FROM a`:                                          false,
		`SELECT *, id FROM a UNION SELECT *, n FROM a`:                                 false,
		`WITH x AS (SELECT 1) SELECT *, id FROM a`:                                     false,
		`SELECT *, *, id FROM a`:                                                       false,
		`SELECT id, id FROM a`:                                                         false,
		`SELECT *, id, id FROM a`:                                                      false,
		`SELECT * FROM a`:                                                              false,
		`SELECT *, id`:                                                                 false,
		`UPDATE a SET n = 1 RETURNING *, id`:                                           false,
		`SELECT *, '\' , id FROM a`:                                                    false,
		`SELECT *, id FROM a) AS x, (SELECT 1`:                                         false,
		`SELECT x.*, x.id FROM (SELECT a.id, b.n FROM a CROSS JOIN b) AS x, LATERAL y`: true,
	} {
		if got := IsRepeated(query, "id", 2); got != is {
			t.Errorf("%s: %v", query, got)
		}
	}
	if IsRepeated(`SELECT *, user FROM a`, "user", 2) || !IsRepeated(`SELECT *, a.user FROM a`, "user", 2) || !IsRepeated(`SELECT *, "user" FROM a`, "user", 2) {
		t.Error("user stands for the name of the role")
	}
	if !IsRepeated(`SELECT id, *, id FROM a`, "id", 3) {
		t.Error("three times")
	}
}
