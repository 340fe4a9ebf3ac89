package look

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/gormlock/gormlock/lockkey"
)

// shownID matches a key without a name as it is shown, or the end of a name that was too long.
var shownID = regexp.MustCompile(`^(?:.*…)?(?:int64\((-?\d+)\)|pair\((-?\d+),(-?\d+)\))$`)

// keysOf are the keys that a text can mean, as shown or as people write it. A number can be an id or a name.
func keysOf(text string) ([]lockkey.Key, error) {
	if text == "" {
		return nil, nil
	}
	if m := shownID.FindStringSubmatch(text); m != nil {
		id, err := strconv.ParseInt(m[1], 10, 64)
		if err == nil {
			return []lockkey.Key{lockkey.Int64(id)}, nil
		}
		hi, notHi := strconv.ParseInt(m[2], 10, 32)
		lo, notLo := strconv.ParseInt(m[3], 10, 32)
		if notHi == nil && notLo == nil {
			return []lockkey.Key{lockkey.Pair(int32(hi), int32(lo))}, nil
		}
	}
	parts, err := partsOf(text)
	if err != nil {
		if strings.Contains(text, "*") {
			return nil, nil // it is only a pattern
		}
		return nil, err
	}
	keys := []lockkey.Key{lockkey.Of(parts...)}
	if id, err := strconv.ParseInt(text, 10, 64); err == nil {
		keys = append(keys, lockkey.Int64(id), lockkey.Pair(int32(id>>32), int32(id))) // --json shows both as one number
	}
	return keys, nil
}

// partsOf are the parts of a name: they end at a slash, or are in quotes, as [lockkey.Key.Name] writes ambiguous parts.
func partsOf(name string) (parts []any, err error) {
	for rest, more := name, true; more; {
		var part string
		if !strings.HasPrefix(rest, `"`) {
			part, rest, more = strings.Cut(rest, "/")
			parts = append(parts, part)
			continue
		}
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return nil, fmt.Errorf(`--key %q: a part begins with a quote and does not end with one, as "in voice"/42 does: a quote in it is \", a line break \n`, name)
		}
		if part, err = strconv.Unquote(quoted); err != nil {
			return nil, fmt.Errorf("--key %q: the quoted part %s: %w", name, quoted, err)
		}
		parts = append(parts, part)
		if rest, more = strings.CutPrefix(rest[len(quoted):], "/"); !more && rest != "" {
			return nil, fmt.Errorf("--key %q: behind the quoted part %s stands no slash", name, quoted)
		}
	}
	return parts, nil
}
