package once

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// longNumber matches every text with a number that a float64 could round. Other texts need no check.
var longNumber = regexp.MustCompile(`[0-9.]{16}`)

// refuseRounded is an error if the stored text has a number that dest, which was read from it, does not hold.
func (o *Call) refuseRounded(stored []byte, dest any) error {
	if !longNumber.Match(stored) {
		return nil
	}
	now, err := json.Marshal(reflect.ValueOf(dest).Elem().Interface())
	if err != nil {
		return nil //nolint:nilerr // loseChanged handles it
	}
	if was, is := roundedTo(numbers(stored), numbers(now)); was != "" {
		return o.rounded(was, is)
	}
	return nil
}

func (o *Call) rounded(was, is string) error {
	return fmt.Errorf("gormlock: once %q: the number %s of the result would be read as %s: give it a type that holds it, such as int64 and no any, or return it as text",
		o.Key, was, is)
}

// numbers returns the value of a JSON text, with its numbers as they are written.
func numbers(text []byte) (value any) {
	reader := json.NewDecoder(bytes.NewReader(text))
	reader.UseNumber()
	_ = reader.Decode(&value) // it was read before
	return value
}

// roundedTo finds a number in stored that differs from the number in the same place of now, and returns both.
func roundedTo(stored, now any) (was, is string) {
	switch stored := stored.(type) {
	case map[string]any:
		has, _ := now.(map[string]any)
		for name, value := range stored {
			if was, is = roundedTo(value, valueOf(has, name)); was != "" {
				break
			}
		}
	case []any:
		has, _ := now.([]any)
		for i := 0; i < min(len(stored), len(has)) && was == ""; i++ {
			was, is = roundedTo(stored[i], has[i])
		}
	case json.Number:
		if other, is := now.(json.Number); is && !isKeptAs(stored.String(), other.String()) {
			return stored.String(), other.String()
		}
	}
	return was, is
}

// valueOf is the value of a name. As in encoding/json, the name may differ in upper and lower case.
func valueOf(object map[string]any, name string) any {
	if value, is := object[name]; is {
		return value
	}
	for other, value := range object {
		if strings.EqualFold(other, name) {
			return value
		}
	}
	return nil
}

// isKeptAs reports whether two texts are the same number: as decimals, or because stored is exactly the float64 that now is the shortest text of.
func isKeptAs(stored, now string) bool {
	near, err := strconv.ParseFloat(now, 64)
	if stored == now || err != nil || near == 0 { // no float64 has such an exponent
		return true
	}
	was, isNumber := new(big.Rat).SetString(stored)
	is, _ := new(big.Rat).SetString(now)
	return !isNumber || was.Cmp(is) == 0 || was.Cmp(new(big.Rat).SetFloat64(near)) == 0
}

// refuseOpen is an error if the result has an integer in an interface, such as any, that no float64 holds. refuseRounded can miss such a number:
// JSON may write it like the float64 as which it is read back.
func (o *Call) refuseOpen(stored []byte, made, dest any) error {
	if !longNumber.Match(stored) {
		return nil
	}
	if was, is := roundedIn(reflect.ValueOf(made), reflect.TypeOf(dest).Elem().Kind() == reflect.Interface); was != "" {
		return o.rounded(was, is)
	}
	return nil
}

// roundedIn finds an integer that no float64 holds. open says that v is in an interface.
func roundedIn(v reflect.Value, open bool) (was, is string) {
	if !v.IsValid() || marshalsItself(v) {
		return "", ""
	}
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		if near := float64(v.Int()); open && (near >= 1<<63 || int64(near) != v.Int()) {
			return fmt.Sprint(v.Int()), fmt.Sprintf("%.0f", near)
		}
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		if near := float64(v.Uint()); open && (near >= 1<<64 || uint64(near) != v.Uint()) {
			return fmt.Sprint(v.Uint()), fmt.Sprintf("%.0f", near)
		}
	case reflect.Interface:
		return roundedIn(v.Elem(), true)
	case reflect.Pointer:
		return roundedIn(v.Elem(), open)
	case reflect.Struct:
		for i := 0; i < v.NumField() && was == ""; i++ {
			if field := v.Type().Field(i); isKept(field) {
				_, options, _ := strings.Cut(field.Tag.Get("json"), ",")
				was, is = roundedIn(v.Field(i), open && !strings.Contains(options, "string")) // the option string makes a text of it
			}
		}
	case reflect.Slice, reflect.Array:
		for i := 0; i < v.Len() && was == ""; i++ {
			was, is = roundedIn(v.Index(i), open)
		}
	case reflect.Map:
		for each := v.MapRange(); was == "" && each.Next(); {
			was, is = roundedIn(each.Value(), open)
		}
	default:
	}
	return was, is
}
