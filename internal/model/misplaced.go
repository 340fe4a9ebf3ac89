package model

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"gorm.io/gorm/schema"
)

// ours is the key of the tags that are read here.
const ours = "gormlock"

// checkPlaces refuses tags that would have no effect: on a field that GORM does not see, inside of GORM's own tag, without a
// word, or under a misspelled key.
func checkPlaces(model reflect.Type) error {
	for i := range model.NumField() {
		field := model.Field(i)
		if err := checkPlace(field); err != nil {
			return fmt.Errorf("%s: %w", field.Name, err)
		}
		embedded := field.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		settings := schema.ParseTagSetting(field.Tag.Get("gorm"), ";")
		_, byTag := settings["EMBEDDED"]
		if embedded.Kind() == reflect.Struct && embedded != model && (field.Anonymous || byTag) {
			if err := checkPlaces(embedded); err != nil {
				return fmt.Errorf("%s.%w", field.Name, err)
			}
		}
		if isUnread(field, settings) && embedded.Kind() == reflect.Struct && embedded != model && hasTags(embedded, nil) {
			return fmt.Errorf("%s: a tag `gormlock` is inside of a struct whose fields GORM does not read as columns: export its type, or embed it", field.Name)
		}
	}
	return nil
}

// isUnread reports whether a field is a struct that looks embedded although GORM reads no columns from it.
func isUnread(field reflect.StructField, settings map[string]string) bool {
	_, byTag := settings["EMBEDDED"]
	_, serialized := settings["SERIALIZER"]
	_, ignored := settings["-"]
	return (field.Anonymous || byTag) && (!field.IsExported() || ignored) || serialized
}

// hasTags reports whether a struct has gormlock tags. been are the structs that it has already looked into.
func hasTags(t reflect.Type, been []reflect.Type) bool {
	for i := range t.NumField() {
		field := t.Field(i)
		if _, is := field.Tag.Lookup(ours); is {
			return true
		}
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if field.Anonymous && inner.Kind() == reflect.Struct && !slices.Contains(been, inner) && hasTags(inner, append(been, t)) {
			return true
		}
	}
	return false
}

func checkPlace(field reflect.StructField) error {
	value, tagged := field.Tag.Lookup(ours)
	settings := schema.ParseTagSetting(field.Tag.Get("gorm"), ";")
	inside := func(word string) bool { return isMeant(strings.ToLower(word)) }
	switch {
	case tagged && !field.IsExported():
		return fmt.Errorf("the tag `gormlock` is on an unexported field, which GORM does not read: export the field")
	case tagged && strings.TrimSpace(value) == "":
		return fmt.Errorf("the tag `gormlock` is empty: it is `gormlock:\"version\"`, `gormlock:\"unversioned\"` or `gormlock:\"fence\"`")
	}
	for word, value := range settings {
		if inside(word) {
			return fmt.Errorf("`gormlock` is inside the tag `gorm`, where nothing reads it: write `gormlock:%q` beside it", wordsOf(value))
		}
	}
	for _, key := range tagKeys(field.Tag) {
		if key != ours && isMeant(key) {
			return fmt.Errorf("nothing reads the tag `%s`: did you mean `gormlock`?", key)
		}
	}
	return nil
}

// wordsOf are the words of a gormlock tag that stands inside of another tag. The error shows them as they should be written.
func wordsOf(value string) string {
	if value == "" || isMeant(strings.ToLower(value)) {
		return "version"
	}
	return value
}

var tagKey = regexp.MustCompile(`(?:^|\s)([^\s":]+):"`)

// tagKeys are the keys of a tag. A malformed key hides the keys after it.
func tagKeys(tag reflect.StructTag) []string {
	var keys []string
	for _, found := range tagKey.FindAllStringSubmatch(string(tag), -1) {
		keys = append(keys, found[1])
	}
	return keys
}

// isMeant reports whether a key is `gormlock` or a misspelling of it.
func isMeant(key string) bool {
	return distance(strings.ToLower(key), ours) <= 2
}

// distance is how many letters must be inserted, removed or changed to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := slices.Clone(row)
		row[0] = i + 1
		for j := range len(b) {
			change := before[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, before[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
