package sqltext_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/internal/sqltext"
)

func TestReachOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]sqltext.Reach{
		"a":                                                    {Relations: []string{"a"}},
		`"A b" AS c`:                                           {Relations: []string{`"A b"`}},
		`s . "A" /* , b */ c`:                                  {Relations: []string{`s."A"`}},
		"a, b c, (SELECT * FROM d) e":                          {Relations: []string{"a", "b", "d"}},
		"a JOIN b ON a.join = b.from":                          {Relations: []string{"a", "b"}},
		"a LEFT JOIN (b CROSS JOIN c) ON true":                 {Relations: []string{"a", "b", "c"}},
		"a JOIN b ON a.x = ANY (ARRAY[b.x, 1]), c":             {Relations: []string{"a", "b", "c"}},
		"a JOIN b ON a.x = ARRAY[b.x, 1], c":                   {Relations: []string{"a", "b", "c"}},
		"only (a), b * TABLESAMPLE system (1), c":              {Relations: []string{"a", "b", "c"}},
		"((SELECT * FROM a) b CROSS JOIN (SELECT * FROM c) d)": {Relations: []string{"a", "c"}},
		"(SELECT a.from, b.order AS limit FROM a, b WHERE (x) IN (SELECT y FROM c)) d": {Relations: []string{"a", "b"}},
		"(SELECT * FROM a WHERE x IS NOT DISTINCT FROM 1) b":                           {Relations: []string{"a"}},
		"(SELECT x IS NOT DISTINCT FROM y, 1 FROM a) b":                                {Relations: []string{"a"}},
		"(SELECT a.* FROM a, b) c":                                                     {Relations: []string{"a"}},
		"(SELECT s.a.x, 1, 'y' AS z, NULL FROM s.a, b) c":                              {Relations: []string{"s.a"}},
		"(SELECT 1 FROM a, b) c":                                                       {Relations: []string{"a", "b"}},
		"(SELECT a.x + b.x FROM a, b) c":                                               {Relations: []string{"a", "b"}},
		`(SELECT u&"\0061".x FROM a, b) c`:                                             {Relations: []string{"a", "b"}},
		"(SELECT FROM a, b) c":                                                         {Relations: []string{"a", "b"}},
		"f(1, (SELECT x FROM a)) g, a":                                                 {Relations: []string{"a"}, Functions: []string{"f"}},
		`s."F" ( ) WITH ORDINALITY AS g (x, n), a`:                                     {Relations: []string{"a"}, Functions: []string{`s."F"`}},
		"LATERAL ROWS FROM (f(1, g()), h() AS (x int)) AS i, a":                        {Relations: []string{"a"}, Functions: []string{"f", "h"}},
		"f() AS g":              {Functions: []string{"f"}, Nothing: true},
		"(VALUES (1)) AS v (x)": {Nothing: true},
		"(SELECT 1) AS x":       {Nothing: true},
		"(WITH a AS (SELECT * FROM b) SELECT * FROM a) c":                                                      {With: "a"},
		"(WITH a AS (SELECT * FROM b) SELECT * FROM s.a) c":                                                    {Relations: []string{"s.a"}},
		"(WITH a AS (SELECT * FROM b) SELECT c.* FROM a, c) d":                                                 {Relations: []string{"c"}},
		"(WITH a AS (SELECT * FROM b) SELECT * FROM a, c) d":                                                   {Relations: []string{"c"}, With: "a"},
		"(WITH a AS (SELECT * FROM b) SELECT * FROM a, model) d":                                               {Relations: []string{"model"}},
		"(WITH a AS (SELECT * FROM b) SELECT a.*, model.x FROM a, model) d":                                    {Relations: []string{"model"}, With: "a"},
		"(WITH a AS (SELECT * FROM b FOR UPDATE NOWAIT) SELECT * FROM a) c":                                    {Relations: []string{"b"}},
		"(WITH a AS (SELECT * FROM b FOR NO KEY UPDATE) SELECT * FROM a) c":                                    {Relations: []string{"b"}},
		"(WITH a AS (SELECT * FROM b FOR SHARE) SELECT * FROM a) c":                                            {With: "a"},
		"(WITH a AS (SELECT * FROM b FOR UPDATE OF b) SELECT * FROM a) c":                                      {With: "a"},
		"(WITH a AS (SELECT * FROM b FOR UPDATE), c AS (SELECT * FROM a) SELECT * FROM c) d":                   {Relations: []string{"b"}},
		"(WITH a AS (UPDATE b SET x = 1 RETURNING *) SELECT * FROM a) c":                                       {With: "a"},
		"(WITH RECURSIVE a AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM a) SELECT * FROM a) b":                {Nothing: true},
		"(WITH RECURSIVE a AS (SELECT * FROM c), c AS (SELECT * FROM d) SELECT * FROM a) b":                    {With: "c"},
		"(WITH a AS (SELECT * FROM b) SEARCH DEPTH FIRST BY x, y SET z, c AS (SELECT 1) SELECT * FROM c, a) d": {With: "a"},
		"(WITH A AS (TABLE b) TABLE a) c":                                                                      {With: "a"},
		`(WITH "A" AS (TABLE b) TABLE a) c`:                                                                    {Relations: []string{"a"}},
		"$1 a":                                                                                                 {Unread: true},
		"(a":                                                                                                   {Unread: true},
		"a)":                                                                                                   {Unread: true},
		"(SELECT * FROM a WHERE x = 'y) b":                                                                     {Unread: true},
		`(SELECT * FROM a WHERE x = '\') b, (SELECT * FROM c WHERE x = '\') d`:                                 {Relations: []string{"a", "c"}},
		`(SELECT * FROM a WHERE x = '\') b, c AS (SELECT * FROM d WHERE x = '\'')) e`:                          {Unread: true},
		`u&"a" b`: {Unread: true},
		"":        {Nothing: true},
	} {
		got := sqltext.ReachOf("SELECT * FROM "+text, sqltext.Asked{Strength: 2, Model: "model", Descends: true})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", text, got, want)
		}
	}
}

func TestReachOf_whole(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"SELECT * FROM a WHERE x IN (SELECT y FROM b) ORDER BY z FOR ": "[a]",
		"WITH a AS (SELECT * FROM b) SELECT * FROM c FOR UPDATE":       "[c]",
		"WITH a AS (SELECT * FROM b), d AS (TABLE a) TABLE d":          "a",
		"/* WITH */ SELECT 'FROM' FROM a":                              "[a]",
		"(SELECT * FROM a)":                                            "[a]",
		"EXPLAIN SELECT * FROM a":                                      "unread",
		"SELECT now() FOR ":                                            "nothing",
	} {
		reach := sqltext.ReachOf(text, sqltext.Asked{Strength: 1, Descends: true})
		got := reach.With
		switch {
		case reach.Unread:
			got = "unread"
		case reach.Nothing:
			got = "nothing"
		case len(reach.Relations) > 0:
			got = fmt.Sprint(reach.Relations)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	if reach := sqltext.ReachOf("SELECT * FROM ((SELECT * FROM a) UNION SELECT * FROM b) AS c", sqltext.Asked{Strength: 1}); reach.SubQuery != "c" {
		t.Errorf("a query that begins with a bracket: %+v", reach)
	}
	of := func(names ...string) sqltext.Reach {
		const text = "SELECT a.* FROM a JOIN (SELECT * FROM b) AS c ON true JOIN (WITH d AS (TABLE e) TABLE d) AS f ON true"
		return sqltext.ReachOf(text, sqltext.Asked{Strength: 1, Of: names, Descends: true})
	}
	for names, want := range map[string]string{"a": "[a]", "c": "[b]", "a c": "[a b]", "f": "[]d", "a f": "[a]d"} {
		if got := fmt.Sprint(of(strings.Fields(names)...).Relations) + of(strings.Fields(names)...).With; got != want {
			t.Errorf("of %s: got %s, want %s", names, got, want)
		}
	}
}

func FuzzReachOf(f *testing.F) {
	f.Add("(WITH a AS (SELECT * FROM b), c (x) AS (VALUES (1)) SELECT a.*, 1 x FROM a JOIN LATERAL f(a.x) WITH ORDINALITY g ON true) d, ONLY e *", true)
	f.Add(`ROWS FROM (f(), g()) h, [a "b" $x$ ] 'c\'`, false)
	f.Fuzz(func(_ *testing.T, text string, descends bool) {
		sqltext.ReachOf("SELECT * FROM "+text, sqltext.Asked{Strength: 1, Descends: descends})
		sqltext.ReachOf(text, sqltext.Asked{Strength: 4, Of: []string{"a"}, Descends: descends})
	})
}
