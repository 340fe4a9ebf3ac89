package etag

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrMalformed is the error of an If-Match or If-None-Match that RFC 9110 does not allow, or that is far too long: 400 Bad
// Request.
var ErrMalformed = errors.New("gormlock: malformed entity tags")

// mostTags is how many tags a header may have.
const mostTags = 1000

// wanted holds the tags that If-Match or If-None-Match names.
type wanted struct {
	any  bool // *
	tags []string
}

// parseTags reads the lines of If-Match or If-None-Match: `*`, or a list of tags. Empty elements are allowed. A tag cannot continue
// in the next line.
func parseTags(name string, lines []string) (wanted, error) {
	if len(lines) == 1 && strings.Trim(lines[0], " \t") == "*" {
		return wanted{any: true}, nil
	}
	var tags []string
	for _, rest := range lines {
		for comma := true; ; {
			rest = strings.TrimLeft(rest, " \t")
			if rest == "" {
				break
			}
			if rest[0] == ',' {
				comma, rest = true, rest[1:]
				continue
			}
			n := tagLength(rest)
			switch {
			case n == 0:
				return wanted{}, fmt.Errorf("%w: %s may list nothing but \"…\" and W/\"…\"", ErrMalformed, name)
			case !comma:
				return wanted{}, fmt.Errorf("%w: %s lacks a comma between two tags", ErrMalformed, name)
			case len(tags) == mostTags:
				return wanted{}, fmt.Errorf("%w: %s has more than %d tags", ErrMalformed, name, mostTags)
			}
			tags, rest, comma = append(tags, rest[:n]), rest[n:], false
		}
	}
	if len(tags) == 0 {
		return wanted{}, fmt.Errorf("%w: %s names no tag", ErrMalformed, name)
	}
	return wanted{tags: tags}, nil
}

// tagLength is the length of the tag at the beginning of text; 0: there is none.
func tagLength(text string) int {
	at := 0
	if strings.HasPrefix(text, "W/") {
		at = 2
	}
	if !strings.HasPrefix(text[at:], `"`) {
		return 0
	}
	for i := at + 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return i + 1
		case c < '!' || c == 0x7f:
			return 0
		}
	}
	return 0
}

// hasStrongly compares as If-Match does: both tags must be strong and have the same octets.
func (w wanted) hasStrongly(tag string) bool {
	return w.any || !strings.HasPrefix(tag, "W/") && slices.Contains(w.tags, tag)
}

// hasWeakly compares as If-None-Match does: a weak tag and a strong one are the same.
func (w wanted) hasWeakly(tag string) bool {
	return w.any || slices.ContainsFunc(w.tags, func(t string) bool { return strings.TrimPrefix(t, "W/") == strings.TrimPrefix(tag, "W/") })
}
