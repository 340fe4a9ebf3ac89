package column

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// nullTag is the tag of a NULL version, which rows of Rails can have.
const nullTag = `"null"`

// isClock matches timestamps without a time zone. They hold what a clock shows in the zone of the connection, not an instant.
var isClock = regexp.MustCompile(`(?i)^\s*timestamp\s*(\(\d\))?\s*(without time zone\s*)?$`)

// Tag is v as a strong entity tag of HTTP, quotes included. It is empty if v cannot have been read from a row.
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

// OfTag is the version that has this tag. ok is false if no version of the column has it. Tags are
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
