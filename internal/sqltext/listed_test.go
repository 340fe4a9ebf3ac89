package sqltext

import (
	"reflect"
	"testing"
)

func TestList(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]Listed{
		`*`:            {{Text: "*", Column: "*"}},
		`"a".*, b.n`:   {{Text: `"a".*`, Table: "a", Column: "*"}, {Text: "b.n", Table: "b", Column: "n", Names: []string{"n", "n"}}},
		`N AS Version`: {{Text: "N AS Version", Column: "n", Names: []string{"Version", "version"}}},
		`n "Ver"`:      {{Text: `n "Ver"`, Column: "n", Names: []string{"Ver", "ver"}}},
		`lower(n)`:     {{Text: "lower(n)", Names: []string{"lower", "lower"}}},
		`n + 1 AS m`:   {{Text: "n + 1 AS m", Names: []string{"m", "m"}}},
		`(n, m)`:       {{Text: "(n, m)", Names: []string{"n", "n", "m", "m"}}},
		`n::int`:       {{Text: "n::int", Names: []string{"n", "n", "int", "int"}}},
		`s.a.n`:        {{Text: "s.a.n", Table: "a", Column: "n", Names: []string{"n", "n"}}},
		``:             nil,
	} {
		if got, read := List(text); !read || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", text, got)
		}
	}
	if _, read := List("(n"); read {
		t.Error("a bracket is open")
	}
}
