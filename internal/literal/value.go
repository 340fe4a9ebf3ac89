package literal

import (
	"database/sql/driver"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/sqltext"
)

// longest is the length of the longest text that is written out. A longer one is content, and not a constant.
const longest = 64

// appendValue writes an argument as a constant. A text has no type, like a parameter. Numbers and booleans have their types, so that the server
// refuses a column of another type, as the driver does. ok is false for a value that must stay a parameter.
func appendValue(to []byte, value any) (_ []byte, ok bool) {
	switch v := value.(type) {
	case string:
		return appendText(to, v)
	case bool:
		return strconv.AppendBool(to, v), true
	case int:
		return appendInteger(to, int64(v)), true
	case int64:
		return appendInteger(to, v), true
	case nil:
		return to, false
	case driver.Valuer:
		return appendValued(to, v)
	case fmt.Stringer: // the driver may send the result of String
		return to, false
	}
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.String:
		return appendText(to, v.String())
	case reflect.Bool:
		return strconv.AppendBool(to, v.Bool()), true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return appendInteger(to, v.Int()), true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if v.Uint() > math.MaxInt64 {
			return to, false
		}
		return strconv.AppendUint(to, v.Uint(), 10), true
	}
	return to, false
}

// appendValued writes the value of an enumeration of the program. Other Valuers are structs: times, decimals, JSON.
func appendValued(to []byte, valuer driver.Valuer) ([]byte, bool) {
	switch reflect.TypeOf(valuer).Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
	default:
		return to, false
	}
	value, err := valuer.Value()
	if err != nil {
		return to, false // the driver reports it
	}
	switch v := value.(type) {
	case string, bool, int64:
		return appendValue(to, v)
	}
	return to, false
}

// appendText writes a text so that it does not depend on standard_conforming_strings.
func appendText(to []byte, text string) ([]byte, bool) {
	if len(text) > longest || strings.ContainsAny(text, "\\\x00") || !utf8.ValidString(text) {
		return to, false
	}
	to = append(to, '\'')
	for i := range len(text) {
		if text[i] == '\'' {
			to = append(to, '\'')
		}
		to = append(to, text[i])
	}
	return append(to, '\''), true
}

func appendInteger(to []byte, v int64) []byte {
	if v < 0 { // two minus signs would begin a comment
		return append(strconv.AppendInt(append(to, '('), v, 10), ')')
	}
	return strconv.AppendInt(to, v, 10)
}

// kinds are the kinds of constants that mean the same in the text as they do as arguments.
type kinds struct{ text, integer, boolean bool }

// kindsOf are the kinds that a place accepts, by the type of the column that is compared there. If the type is not known, a text could be read as a
// time, whose meaning depends on the moment and the session.
func kindsOf(asked question, place sqltext.Parameter) (k kinds) {
	if asked.model == nil || place.Column == "" || place.Table != "" && place.Table != asked.table {
		return k
	}
	field := asked.model.FieldsByDBName[place.Column]
	if field == nil {
		return k
	}
	kind, _, _ := strings.Cut(strings.ToLower(string(field.DataType)), " ")
	kind, _, _ = strings.Cut(kind, "(")
	switch kind {
	case string(schema.Int), string(schema.Uint), "smallint", "integer", "bigint", "int2", "int4", "int8", "smallserial", "serial", "bigserial":
		return kinds{text: true, integer: true}
	case string(schema.Bool), "boolean":
		return kinds{text: true, boolean: true}
	case "date", string(schema.Time), "timetz", "timestamp", "timestamptz", "interval", "daterange", "tsrange", "tstzrange":
		return k
	}
	return kinds{text: true}
}

// append writes a constant if it is one of these kinds.
func (k kinds) append(to []byte, value any) (_ []byte, ok bool) {
	written, ok := appendValue(to, value)
	if !ok {
		return to, false
	}
	switch written[len(to)] {
	case '\'':
		ok = k.isTimeless(string(written[len(to)+1 : len(written)-1]))
	case 't', 'f':
		ok = k.boolean
	default:
		ok = k.integer
	}
	if !ok {
		return to, false
	}
	return written, true
}

// isTimeless reports whether a text cannot be a time whose meaning depends on the moment and the session. A column that is a string in the program
// may be a time in the table.
func (k kinds) isTimeless(text string) bool {
	digits := 0
	for i := range len(text) {
		if text[i] >= '0' && text[i] <= '9' {
			digits++
		}
	}
	if digits > 0 && !k.text || digits >= len("2026") {
		return false
	}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		switch strings.ToLower(word) {
		case "now", "today", "tomorrow", "yesterday", "allballs":
			return false
		}
	}
	return true
}
