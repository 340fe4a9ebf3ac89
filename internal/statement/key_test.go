package statement_test

import (
	"testing"

	"github.com/gormlock/gormlock/internal/statement"
)

// A pointer names the key that its value names, and NULL is no zero.
func TestKeyName(t *testing.T) {
	t.Parallel()
	zero, seven, text := int64(0), int64(7), "x"
	null := (*int64)(nil)
	for _, c := range []struct {
		a, b any
		same bool
	}{
		{zero, &zero, true},
		{zero, uint8(0), true},
		{seven, &seven, true},
		{text, &text, true},
		{null, nil, true},
		{zero, null, false},
		{&zero, nil, false},
		{zero, seven, false},
	} {
		for _, beside := range []any{nil, 4} {
			a, b := []any{c.a}, []any{c.b}
			if beside != nil {
				a, b = append(a, beside), append(b, beside)
			}
			if same := statement.KeyName(a) == statement.KeyName(b); same != c.same {
				t.Errorf("%v and %v: %q and %q", a, b, statement.KeyName(a), statement.KeyName(b))
			}
		}
	}
}
