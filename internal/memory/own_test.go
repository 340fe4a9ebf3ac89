package memory_test

import (
	"database/sql/driver"
	"encoding/json"
	"math/big"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/memory"
)

type ring struct {
	Next *ring
	N    int
}

// kinds has all kinds of values that can refer to others.
type kinds struct {
	Map       map[string][]int
	Slice     [][]string
	Pointer   **int
	Any       any
	Array     [2]*int
	Raw       json.RawMessage
	At        *time.Time
	Number    *big.Int
	Bare      big.Int
	Address   netip.Addr
	Ring      *ring
	NilMap    map[string]int
	NilSlice  []int
	NilPoints *int
	Empty     []int
	hidden    []int
}

func newKinds() *kinds {
	n, at := 1, time.Unix(1e9, 0)
	p := &n
	r := &ring{N: 1}
	r.Next = &ring{r, 2}
	return &kinds{
		map[string][]int{"a": {1}}, [][]string{{"x"}}, &p, map[string]any{"k": []any{1.5}}, [2]*int{p, nil}, json.RawMessage(`{}`), &at,
		big.NewInt(1 << 40), *big.NewInt(7), netip.MustParseAddr("::1"), r, nil, nil, nil, []int{}, []int{1},
	}
}

// A change of an own value does not change the original, and both were equal.
func TestOwn(t *testing.T) {
	t.Parallel()
	given, was := newKinds(), newKinds()
	own := *memory.Own(reflect.ValueOf(given)).Interface().(*kinds)
	if !reflect.DeepEqual(own, *given) {
		t.Fatalf("%+v is not %+v", own, given)
	}
	own.Map["a"][0], own.Map["b"], own.Slice[0][0] = 2, nil, "y"
	**own.Pointer, *own.Array[0], own.Raw[0] = 2, 3, '['
	own.Any.(map[string]any)["k"].([]any)[0] = "other"
	*own.At = time.Time{}
	own.Number.SetUint64(3) // in place, while an addition would need more room
	own.Bare.SetUint64(4)
	own.Ring.Next.Next.N = 9
	if !reflect.DeepEqual(was, given) {
		t.Errorf("%+v was changed to %+v", was, given)
	}
}

// These can be written as text, bytes or a column, but not read again.
type (
	textOnly   struct{ hidden []int }
	bytesOnly  struct{ hidden []int }
	columnOnly struct{ hidden []int }
)

func (textOnly) MarshalText() ([]byte, error)    { return []byte("text"), nil }
func (bytesOnly) MarshalBinary() ([]byte, error) { return []byte("bytes"), nil }
func (columnOnly) Value() (driver.Value, error)  { return "column", nil }

// A value that nothing can make again is kept as it is.
func TestOwn_ofWhatCannotBeMadeAgain(t *testing.T) {
	t.Parallel()
	for _, given := range []any{textOnly{[]int{1}}, bytesOnly{[]int{2}}, columnOnly{[]int{3}}} {
		if own := memory.Own(reflect.ValueOf(given)).Interface(); !reflect.DeepEqual(own, given) {
			t.Errorf("own %#v is not %#v", own, given)
		}
	}
}

// These can be made again from text, bytes, or a column's value. The last one loses something on the way.
type (
	asText   struct{ hidden []byte }
	asBytes  struct{ hidden []byte }
	asColumn struct{ hidden []byte }
	lossy    struct{ hidden []byte }
)

func (a asText) MarshalText() ([]byte, error) { return a.hidden, nil }
func (a *asText) UnmarshalText(text []byte) error {
	a.hidden = slices.Clone(text)
	return nil
}

func (a asBytes) MarshalBinary() ([]byte, error) { return a.hidden, nil }
func (a *asBytes) UnmarshalBinary(bytes []byte) error {
	a.hidden = slices.Clone(bytes)
	return nil
}

func (a asColumn) Value() (driver.Value, error) { return a.hidden, nil }
func (a *asColumn) Scan(value any) error {
	a.hidden = slices.Clone(value.([]byte)) //nolint:forcetypeassert // Value returns this type
	return nil
}

func (l lossy) MarshalText() ([]byte, error) { return l.hidden, nil }
func (l *lossy) UnmarshalText(text []byte) error {
	l.hidden = slices.Clone(text[1:])
	return nil
}

// A value that only its own package can reach is made again, if the result is equal.
func TestOwn_ofWhatIsMadeAgain(t *testing.T) {
	t.Parallel()
	text, bytes, column, loses := asText{[]byte("abc")}, asBytes{[]byte("abc")}, asColumn{[]byte("abc")}, lossy{[]byte("abc")}
	own := [...][]byte{
		memory.Own(reflect.ValueOf(text)).Interface().(asText).hidden, memory.Own(reflect.ValueOf(bytes)).Interface().(asBytes).hidden,
		memory.Own(reflect.ValueOf(column)).Interface().(asColumn).hidden, memory.Own(reflect.ValueOf(loses)).Interface().(lossy).hidden,
	}
	for _, given := range [][]byte{text.hidden, bytes.hidden, column.hidden} {
		given[0] = 'x'
	}
	for i := range own {
		if string(own[i]) != "abc" {
			t.Errorf("value %d is %q", i, own[i])
		}
	}
}
