package lockkey

import (
	"fmt"
	"strconv"
	"strings"
	"unique"
)

// maxString is how many characters of a name String shows.
const maxString = 120

// Name is the parts joined by slashes, as in invoice/42. A part that is empty
// or holds a slash, a space or anything else that could be misread is quoted as
// a Go string, so no two part lists have one name and none breaks a log line.
// The name is never cut. It is "" for a key without a name: one from [Int64] or
// [Pair], or an invalid one.
func (k Key) Name() string {
	if k.space == invalid {
		return ""
	}
	var name strings.Builder
	for rest := k.text; rest != ""; {
		var part string
		part, rest = cutPart(rest)
		if isPlain(part) {
			name.WriteString(part)
		} else {
			name.WriteString(strconv.Quote(part))
		}
		if rest != "" {
			name.WriteByte('/')
		}
	}
	return name.String()
}

// Topic is the first part as it was given: "invoice" for Of("invoice", 42). It
// is "" for a key without a name.
func (k Key) Topic() string {
	if k.space == invalid || k.text == "" {
		return ""
	}
	topic, _ := cutPart(k.text)
	return topic
}

// String is the key for people: its name, or int64(7) or pair(7,42) when it has
// none. A name of more than 120 characters is cut and followed by its id; an
// invalid key says why it is invalid. The text is printable and one line.
func (k Key) String() string {
	if k.space == invalid {
		return cut(printable(strings.TrimPrefix(k.Err().Error(), "gormlock: ")), "")
	}
	if old, renamed := k.Former(); renamed {
		k.old = unique.Handle[former]{}
		return k.String() + ", formerly " + old.String()
	}
	name := k.Name()
	if name == "" {
		return k.number()
	}
	return cut(name, k.number())
}

func (k Key) number() string {
	if hi, lo, ok := k.Pair(); ok {
		return fmt.Sprintf("pair(%d,%d)", hi, lo)
	}
	return fmt.Sprintf("int64(%d)", k.id)
}

// isPlain reports whether a part can stand in a name without quotes.
func isPlain(part string) bool {
	if part == "" {
		return false
	}
	for _, r := range part {
		if !strconv.IsPrint(r) || strings.ContainsRune("/\"\\() …\uFFFD", r) {
			return false
		}
	}
	return true
}

// printable escapes what cannot stand in one line of text.
func printable(text string) string {
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// cut shortens text to maxString characters and marks the place with an
// ellipsis and tail.
func cut(text, tail string) string {
	characters := 0
	for at := range text {
		if characters == maxString {
			return text[:at] + "…" + tail
		}
		characters++
	}
	return text
}
