package guard

import (
	"strconv"
	"strings"

	"github.com/gormlock/gormlock/internal/statement"
)

// array is the text of an array of integers, as the server reads it.
type array struct{ strings.Builder }

func newArray(n int) *array {
	a := &array{}
	a.Grow(6 * n)
	return a
}

func (a *array) add(n int64) {
	between := byte(',')
	if a.Len() == 0 {
		between = '{'
	}
	_ = a.WriteByte(between)
	var digits [20]byte
	_, _ = a.Write(strconv.AppendInt(digits[:0], n, 10))
}

func (a *array) text() string { return a.String() + "}" }

// arrayOf is the text of an array of keys, where they are integers and many.
func (b builder) arrayOf(keys [][]any) (text string, ok bool) {
	const many = 100
	if len(keys) < many || len(keys[0]) != 1 || !statement.IsPostgres(b.DB) {
		return "", false
	}
	ids := newArray(len(keys))
	for _, key := range keys {
		id, ok := integer(key[0])
		if !ok {
			return "", false
		}
		ids.add(id)
	}
	return ids.text(), true
}

func integer(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case int32:
		return int64(n), true
	case int16:
		return int64(n), true
	case uint:
		return int64(n), n <= 1<<63-1 //nolint:gosec // as compared
	case uint32:
		return int64(n), true
	case uint64:
		return int64(n), n <= 1<<63-1 //nolint:gosec // as compared
	}
	return 0, false
}
