package wire

import (
	"encoding/binary"
	"errors"

	"github.com/gormlock/gormlock/internal/holder"
)

var errRow = errors.New("a row that was not asked for")

// ListedRow reads a row of a statement that takes a list: a key for which the function said no.
func ListedRow(s Statement, values [][]byte) (holder.Place, error) {
	if len(values) != 1 || len(values[0]) != 8 {
		return holder.Place{}, errRow
	}
	return holder.Place{Space: s.Space(), ID: int64(binary.BigEndian.Uint64(values[0]))}, nil
}

// TokenRow reads a row of [Issue]: the key, and the number of its token.
func TokenRow(values [][]byte) (at holder.Place, number int64, err error) {
	if len(values) != 3 || len(values[0]) != 2 || len(values[1]) != 8 || len(values[2]) != 8 {
		return holder.Place{}, 0, errRow
	}
	at = holder.Place{Space: int16(binary.BigEndian.Uint16(values[0])), ID: int64(binary.BigEndian.Uint64(values[1]))}
	return at, int64(binary.BigEndian.Uint64(values[2])), nil
}
