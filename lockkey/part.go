package lockkey

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// partText is the text a part counts as, or what keeps it from being one.
func partText(part any) (text, problem string) {
	switch v := part.(type) {
	case string:
		return v, ""
	case int:
		return strconv.Itoa(v), ""
	case int64:
		return strconv.FormatInt(v, 10), ""
	case []byte:
		return string(v), ""
	case nil:
		return "", "is nil"
	case Key, *Key, time.Time, *time.Time: // Stringers whose text does not stand for their value
		return "", fmt.Sprintf("is a %T", part)
	}
	v := reflect.ValueOf(part)
	switch v.Kind() {
	case reflect.String:
		return v.String(), ""
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), ""
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10), ""
	}
	if s, ok := part.(fmt.Stringer); ok {
		return stringerText(s, v)
	}
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		return string(v.Bytes()), ""
	}
	return "", fmt.Sprintf("is a %T, not a string, integer, []byte or fmt.Stringer", part)
}

func stringerText(s fmt.Stringer, v reflect.Value) (text, problem string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
		if v.IsNil() {
			return "", fmt.Sprintf("is a nil %T", s)
		}
	}
	defer func() {
		if p := recover(); p != nil {
			text, problem = "", fmt.Sprintf("is a %T whose String panicked: %v", s, p)
		}
	}()
	return s.String(), ""
}

// appendPart writes a part as its length in bytes, a colon and the bytes. No
// two part lists give the same bytes, because each length says where the next
// part begins.
func appendPart(encoding []byte, text string) []byte {
	encoding = strconv.AppendInt(encoding, int64(len(text)), 10)
	encoding = append(encoding, ':')
	return append(encoding, text...)
}

// cutPart splits an encoding that appendPart wrote after its first part.
func cutPart(encoding string) (part, rest string) {
	digits, rest, found := strings.Cut(encoding, ":")
	length, err := strconv.Atoi(digits)
	if !found || err != nil || length > len(rest) {
		panic("lockkey: not an encoding of parts: " + strconv.Quote(encoding))
	}
	return rest[:length], rest[length:]
}
