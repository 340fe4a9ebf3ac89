package pgarray_test

import (
	"math"
	"testing"

	"github.com/gormlock/gormlock/internal/pgarray"
	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestArray_isReadBackByTheServer(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t)
	for _, elements := range [][]string{
		nil, {""}, {"NULL", "null"}, {"a", "b,c", `{"}`, `back\slash`, "tab\tnew\nline", "it's", " padded "}, {"é", "日本"},
	} {
		var a pgarray.Array
		for _, e := range elements {
			a.Text(e)
		}
		got := pgtest.Texts(t, db, "SELECT e FROM unnest($1::text::text[]) WITH ORDINALITY u(e, n) ORDER BY n", a.String())
		if len(got) != len(elements) {
			t.Fatalf("%s came back as %q", a.String(), got)
		}
		for i := range got {
			if got[i] != elements[i] {
				t.Errorf("%q came back as %q", elements[i], got[i])
			}
		}
	}
	var a pgarray.Array
	a.Int(math.MinInt64)
	a.Int(math.MaxInt64)
	if got := pgtest.Texts(t, db, "SELECT e::text FROM unnest($1::text::bigint[]) u(e)", a.String()); len(got) != 2 || got[0] != "-9223372036854775808" || got[1] != "9223372036854775807" {
		t.Errorf("%s came back as %q", a.String(), got)
	}
}
