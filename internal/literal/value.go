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

// longest is the length of the longest text that is written out. A longer one is content, no constant.
const longest = 64

// appendValue writes an argument as a constant: a text without a type, as a parameter is, and numbers and booleans with theirs,
// so that a column of another type is the server's error, as it is the driver's. It is not ok for what stays a parameter.
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
	case fmt.Stringer: // the driver may send what String says
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

// appendValued writes what an enumeration of the program says of itself. Other Valuers are structs: times, decimals, JSON.
func appendValued(to []byte, valuer driver.Valuer) ([]byte, bool) {
	switch reflect.TypeOf(valuer).Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
	default:
		return to, false
	}
	value, err := valuer.Value()
	if err != nil {
		return to, false // the driver says it
	}
	switch v := value.(type) {
	case string, bool, int64:
		return appendValue(to, v)
	}
	return to, false
}

// appendText writes a text that reads the same whatever standard_conforming_strings is.
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

// kinds are the constants that mean in the text what they mean as arguments.
type kinds struct{ text, integer, boolean bool }

// kindsOf are those that a place takes, by the type of the column that is compared there. Where that is not known a text may become a
// time there, which depends on when and in which session it is read.
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

// isTimeless reports whether a text is no time, to which the server would give a meaning that differs by the moment and the session. A column
// that the program has as a string may be one of times too.
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
