package sqltext

import "testing"

func TestIsClosed(t *testing.T) {
	t.Parallel()
	for part, closed := range map[string]bool{
		"": true, "a = 1": true, "(a = 1)": true, "((a))": true, "(a": true, "a = ')'": true, "a = $$)$$": true, "a -- )\n": true, "a /* ) */": true,
		`")" = 1`: true, `a = 'x\')'`: true, `a = 'x\'`: true, "f(a) = $1": true,
		")": false, "a) OR (b": false, "(a)) OR ((b)": false, "a = '(') OR (b": false, "a = 1) OR (1 = 1 /*(*/": false,
	} {
		if IsClosed(part) != closed {
			t.Errorf("%s: %v", part, !closed)
		}
	}
}
