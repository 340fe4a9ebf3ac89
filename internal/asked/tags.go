package asked

import "strings"

// Tags are the entity tags that came in If-Match: a row is written if it has one of them.
type Tags struct {
	Any  bool     // any tag: If-Match: *
	List []string // the strong tags
}

// String is the tags as they came. A long list is cut.
func (t *Tags) String() string {
	if t.Any {
		return "*"
	}
	text := strings.Join(t.List, ", ")
	if len(text) > longestTags {
		text = text[:longestTags] + "…"
	}
	return text
}

const longestTags = 100
