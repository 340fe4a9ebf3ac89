package absent_test

import (
	"fmt"
	"testing"

	"github.com/gormlock/gormlock/internal/absent"
)

func TestIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    any
		is   bool
		name string
	}{
		{nil, true, "nil"},
		{error(nil), true, "nil"},
		{(*int)(nil), true, "a nil *int"},
		{(func())(nil), true, "a nil func()"},
		{new(int), false, "*int"},
		{0, false, "int"},
		{[]byte(nil), false, "[]uint8"}, // the body of an empty request
		{map[string]any(nil), false, "map[string]interface {}"},
		{fmt.Stringer((*text)(nil)), true, "a nil *absent_test.text"},
	} {
		if is, name := absent.Is(c.v), absent.Type(c.v); is != c.is || name != c.name {
			t.Errorf("%v: %v, %s, want %v, %s", c.v, is, name, c.is, c.name)
		}
	}
}

type text struct{}

func (*text) String() string { return "" }
