package models

import (
	"fmt"
	"go/ast"
	"go/types"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"gorm.io/gorm/schema"
)

// NearMisses returns the tags of a struct's own fields that nobody reads: misspelled, inside of another tag, on a field
// that GORM does not see, or empty.
func NearMisses(s *types.Struct) (found []Problem) {
	for i := range s.NumFields() {
		if p := nearMiss(s.Field(i), s.Tag(i)); p != nil {
			found = append(found, *p)
		}
	}
	return found
}

func nearMiss(v *types.Var, tag string) *Problem {
	at := func(fix *Fix, format string, args ...any) *Problem {
		return &Problem{Field: v, Fix: fix, Text: v.Name() + ": " + fmt.Sprintf(format, args...)}
	}
	if value, ok := reflect.StructTag(tag).Lookup("gormlock"); ok {
		switch {
		case strings.TrimSpace(value) == "":
			return at(nil, `the tag gormlock:"" says nothing: write version, unversioned or fence, or leave it out`)
		case !ast.IsExported(v.Name()) && !v.Embedded():
			return at(nil, "GORM does not see an unexported field, nor the tag gormlock on it: export the field")
		case v.Embedded() && isStruct(v.Type()) && kindOf(v.Type()) == noData:
			return at(nil, "the tag gormlock on an embedded struct is not read: tag the field inside of it")
		}
		return nil
	}
	settings := schema.ParseTagSetting(reflect.StructTag(tag).Get("gorm"), ";")
	if value, ok := settings["GORMLOCK"]; ok {
		return at(nil, "gormlock has a tag of its own and is not read inside the tag gorm: write gormlock:%q beside it", wordsOf(value))
	}
	for key, value := range settings {
		if word := strings.ToLower(strings.Split(key, ",")[0]); key == value && isWord(word) && word != "version" {
			return at(nil, "%s is a word of the tag gormlock and is not read inside the tag gorm: write gormlock:%q beside it", word, strings.ToLower(key))
		}
	}
	keys, rest := tagKeys(tag)
	for _, k := range keys {
		if nearName(k.name) && isWord(firstWord(k.value)) {
			fixed := strings.Replace(tag, k.name+":", "gormlock:", 1)
			return at(&Fix{Text: "write gormlock", Tag: fixed}, "nothing reads the tag %s: the name is gormlock", k.name)
		}
	}
	if name := strings.Trim(strings.TrimSpace(rest), ","); name != "" {
		return malformed(at, name)
	}
	return nil
}

// unreadable matches what is left of a tag where it cannot be read further: a name, and what was meant to be its value.
var unreadable = regexp.MustCompile("^[\"'`]?([A-Za-z][\\w.-]*)[ :=]+[\"'`]?([\\w,= ]*)")

// malformed looks at what is left of a tag that cannot be read further.
func malformed(at func(*Fix, string, ...any) *Problem, rest string) *Problem {
	parts := unreadable.FindStringSubmatch(rest)
	if parts == nil || parts[1] != "gormlock" && (!nearName(parts[1]) || !isWord(firstWord(parts[2]))) {
		return nil
	}
	return at(nil, "this tag cannot be read, so nobody sees it: write gormlock:%q, with no blank after the colon", wordsOf(parts[2]))
}

func wordsOf(value string) string {
	if value = strings.Trim(value, "\"`' "); value == "" || strings.EqualFold(value, "gormlock") {
		return "version"
	}
	return value
}

func isStruct(t types.Type) bool {
	t = t.Underlying()
	if pointer, ok := t.(*types.Pointer); ok {
		t = pointer.Elem().Underlying()
	}
	_, ok := t.(*types.Struct)
	return ok
}

func isWord(word string) bool {
	return word == "version" || word == "unversioned" || word == "fence"
}

func firstWord(value string) string {
	word, _, _ := strings.Cut(value, ",")
	return strings.ToLower(strings.TrimSpace(word))
}

// nearName holds for names that are gormlock written wrong.
func nearName(name string) bool {
	plain := strings.NewReplacer("-", "", "_", "", " ", "", ".", "").Replace(strings.ToLower(name))
	const slips = 2
	return name != "gormlock" && plain != "gorm" && distance(plain, "gormlock") <= slips
}

// distance counts the letters to change, add or leave out.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(above+1, row[j]+1, diagonal+cost)
			diagonal = above
		}
	}
	return row[len(b)]
}

type tagKey struct{ name, value string }

// tagKeys reads a tag as reflect does, and returns what it cannot read.
func tagKeys(tag string) (keys []tagKey, rest string) {
	for tag = strings.TrimLeft(tag, " "); tag != ""; tag = strings.TrimLeft(tag, " ") {
		i := strings.IndexFunc(tag, func(r rune) bool { return r <= ' ' || r == ':' || r == '"' || r == 0x7f })
		if i <= 0 || i+1 >= len(tag) || tag[i] != ':' || tag[i+1] != '"' {
			return keys, tag
		}
		name, quoted := tag[:i], tag[i+1:]
		end := 1
		for end < len(quoted) && quoted[end] != '"' {
			if quoted[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(quoted) {
			return keys, tag
		}
		value, err := strconv.Unquote(quoted[:end+1])
		if err != nil {
			return keys, tag
		}
		keys = append(keys, tagKey{name, value})
		tag = quoted[end+1:]
	}
	return keys, ""
}
