package column

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// nullTag is the tag of a version that is NULL, which Rails' rows may have.
const nullTag = `"null"`

// isClock matches types without a time zone. The connection reads them in its own zone, and sends what a clock shows there.
var isClock = regexp.MustCompile(`(?i)^\s*timestamp\s*(\(\d\))?\s*(without time zone\s*)?$`)

// Tag is v as a strong entity tag of HTTP, quotes included. It is empty where no row can have been read at v.
func (c *Version) Tag(v Value) string {
	switch {
	case !c.Loaded(v):
		return ""
	case v.Null:
		return nullTag
	case c.IsTemporal():
		at := c.Stored(v).Time()
		if !isClock.MatchString(c.Field.TagSettings["TYPE"]) {
			at = at.UTC()
		}
		return `"` + at.Format(time.RFC3339Nano) + `"`
	}
	return `"` + strconv.FormatInt(v.N, 10) + `"`
}

// OfTag is the version that has this tag, and false where no row of the column that can be written has it. Tags are
// compared by their octets: "07" is not "7".
func (c *Version) OfTag(tag string) (v Value, ok bool) {
	text := strings.Trim(tag, `"`)
	switch {
	case tag == nullTag:
		v = Value{Null: true}
	case c.IsTemporal():
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return Value{}, false
		}
		v = At(at)
	default:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || c.IsInteger() && (n > c.Largest || n < -c.Largest-1) || c.IsSystem() && (n < 0 || n > math.MaxUint32) {
			return Value{}, false
		}
		v = Value{N: n}
	}
	return v, c.Tag(v) == tag
}
