package look

import "testing"

func TestLike(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"a*", "ab", true}, {"*b", "ab", true}, {"a*c", "abc", true}, {"a*b*c", "aXbXc", true},
		{"a*b*c", "acb", false}, {"*", "", true}, {"aa*aa", "aaa", false}, {"", "", true}, {"", "a", false}, {"*x*", "axb", true},
	} {
		if like(c.pattern, c.text) != c.want {
			t.Errorf("%s and %s", c.pattern, c.text)
		}
	}
}
