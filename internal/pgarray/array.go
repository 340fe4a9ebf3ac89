// Package pgarray writes array literals of PostgreSQL, for lists that every driver and the simple protocol can send as
// text: cast $1::text::bigint[].
package pgarray

import (
	"strconv"
	"strings"
)

// Array is an array literal in the making. The zero value is the empty one.
type Array struct{ text strings.Builder }

// Text appends an element of text, quoted.
func (a *Array) Text(element string) {
	a.next()
	a.text.WriteByte('"')
	_, _ = escaped.WriteString(&a.text, element)
	a.text.WriteByte('"')
}

// Int appends a number.
func (a *Array) Int(element int64) {
	a.next()
	var room [20]byte
	a.text.Write(strconv.AppendInt(room[:0], element, 10))
}

// String is the literal of what was appended.
func (a *Array) String() string {
	if a.text.Len() == 0 {
		return "{}"
	}
	return a.text.String() + "}"
}

func (a *Array) next() {
	if a.text.Len() == 0 {
		a.text.WriteByte('{')
		return
	}
	a.text.WriteByte(',')
}

var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
