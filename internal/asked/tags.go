package asked

import "strings"

// Tags are the entity tags that came in If-Match: a row is written if it has one of them.
type Tags struct {
	Any  bool     // whichever the row has: If-Match: *
	List []string // the strong ones
}

// String is the tags as they came, cut where there are many.
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
