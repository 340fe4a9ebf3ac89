package etag

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// RFC 9110, 8.8.3, 13.1.1, 13.1.2 and 5.6.1: what a list of tags may look like.
func TestRFC9110_lists(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines []string
		any   bool
		tags  []string
	}{
		"one":                       {[]string{`"7"`}, false, []string{`"7"`}},
		"a list":                    {[]string{`"6", "7","8"`}, false, []string{`"6"`, `"7"`, `"8"`}},
		"the RFC's own":             {[]string{`"xyzzy", "r2d2xxxx", "c3piozzzz"`}, false, []string{`"xyzzy"`, `"r2d2xxxx"`, `"c3piozzzz"`}},
		"the RFC's own, weak":       {[]string{`W/"xyzzy", W/"r2d2xxxx", W/"c3piozzzz"`}, false, []string{`W/"xyzzy"`, `W/"r2d2xxxx"`, `W/"c3piozzzz"`}},
		"several lines":             {[]string{`"6"`, `W/"7", "8"`}, false, []string{`"6"`, `W/"7"`, `"8"`}},
		"any":                       {[]string{`*`}, true, nil},
		"any, in blanks":            {[]string{" \t*\t "}, true, nil},
		"blanks and tabs":           {[]string{"\t \"6\" \t,\t\"7\" "}, false, []string{`"6"`, `"7"`}},
		"empty elements":            {[]string{`, ,"6",, "7",`, `,`, ``}, false, []string{`"6"`, `"7"`}},
		"a comma inside":            {[]string{`"6,7", "8"`}, false, []string{`"6,7"`, `"8"`}},
		"an asterisk inside":        {[]string{`"*"`}, false, []string{`"*"`}},
		"an empty tag":              {[]string{`""`}, false, []string{`""`}},
		"a backslash is no escape":  {[]string{`"\", "7"`}, false, []string{`"\"`, `"7"`}},
		"octets above ASCII":        {[]string{"\"\x80\xff\""}, false, []string{"\"\x80\xff\""}},
		"the same twice":            {[]string{`"7", "7"`}, false, []string{`"7"`, `"7"`}},
		"weak inside of the quotes": {[]string{`"W/7"`}, false, []string{`"W/7"`}},
	} {
		got, err := parseTags("If-Match", c.lines)
		if err != nil || got.any != c.any || !slices.Equal(got.tags, c.tags) {
			t.Errorf("%s: %q is %v, %v", name, c.lines, got, err)
		}
	}
	for name, lines := range map[string][]string{
		"nothing":                 {``},
		"blanks":                  {` `, "\t"},
		"commas":                  {`,`, `, ,`},
		"without quotes":          {`7`},
		"one without quotes":      {`"6", 7`},
		"no end":                  {`"7`},
		"no beginning":            {`7"`},
		"an end in the next line": {`"6`, `7"`},
		"a small w":               {`w/"7"`},
		"W without a slash":       {`W"7"`},
		"W apart":                 {`W/ "7"`},
		"weak without quotes":     {`W/7`},
		"a blank inside":          {`"6 7"`},
		"a tab inside":            {"\"6\t7\""},
		"a control inside":        {"\"\x00\""},
		"DEL inside":              {"\"\x7f\""},
		"no comma":                {`"6" "7"`},
		"nothing between":         {`"6""7"`},
		"a semicolon":             {`"6"; "7"`},
		"any among others":        {`*, "7"`},
		"others before any":       {`"7", *`},
		"any twice":               {`*`, `*`},
		"any with a comma":        {`*,`},
		"single quotes":           {`'7'`},
		"too many":                {strings.Repeat(`"7",`, mostTags+1)},
	} {
		if got, err := parseTags("If-Match", lines); !errors.Is(err, ErrMalformed) || got.any || got.tags != nil {
			t.Errorf("%s: %q is %v, %v", name, lines, got, err)
		}
	}
	if got, err := parseTags("If-Match", []string{strings.Repeat(`"7",`, mostTags)}); err != nil || len(got.tags) != mostTags {
		t.Errorf("%d tags: %v", len(got.tags), err)
	}
}

// RFC 9110, 8.8.3.2: the table of comparisons, which compare octets.
func TestRFC9110_comparison(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b         string
		strong, weak bool
	}{
		{`W/"1"`, `W/"1"`, false, true},
		{`W/"1"`, `W/"2"`, false, false},
		{`W/"1"`, `"1"`, false, true},
		{`"1"`, `"1"`, true, true},
		{`"1"`, `"01"`, false, false},
		{`"a"`, `"A"`, false, false},
	} {
		for _, pair := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
			w := wanted{tags: []string{`"other"`, pair[0]}}
			if w.hasStrongly(pair[1]) != c.strong || w.hasWeakly(pair[1]) != c.weak {
				t.Errorf("%s and %s: strong %t, weak %t", pair[0], pair[1], w.hasStrongly(pair[1]), w.hasWeakly(pair[1]))
			}
		}
	}
	all := wanted{any: true}
	if !all.hasStrongly(`W/"1"`) || !all.hasWeakly(`"1"`) {
		t.Error("* excludes a tag")
	}
}

// tag and list are the ABNF of RFC 9110: #entity-tag as a recipient reads it.
const tag = `(?:W/)?"[!#-~\x80-\xff]*"`

var list = regexp.MustCompile(`^[ \t]*(?:` + tag + `)?(?:[ \t]*,[ \t]*(?:` + tag + `)?)*[ \t]*$`)

func isAllowed(lines []string) bool {
	if len(lines) == 1 && strings.Trim(lines[0], " \t") == "*" {
		return true
	}
	return !slices.ContainsFunc(lines, func(line string) bool { return !list.MatchString(latin1(line)) }) &&
		strings.Contains(strings.Join(lines, ""), `"`)
}

// The parser accepts what the grammar allows, and nothing else. What it accepts means the same when it is written again.
func FuzzParseTags(f *testing.F) {
	for _, line := range []string{`"7"`, `*`, `W/"7", "8"`, `, ,"6",,`, `"6" "7"`, `"\", "7"`, "\"\x80\"", `*,`, ``} {
		f.Add(line, `"9"`)
		f.Add(line, ``)
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		lines := []string{one, other}
		if other == "" {
			lines = lines[:1]
		}
		got, err := parseTags("If-Match", lines)
		few := strings.Count(one+other, `"`) <= 2*mostTags
		if allowed := isAllowed(lines); few && allowed != (err == nil) {
			t.Fatalf("%q: %v, the grammar says %t", lines, err, allowed)
		}
		if err != nil {
			return
		}
		again, err := parseTags("If-Match", []string{strings.Join(got.tags, ", ")})
		if !got.any && (err != nil || !slices.Equal(again.tags, got.tags)) {
			t.Fatalf("%q is %q, and that is %q, %v", lines, got.tags, again.tags, err)
		}
		for _, tag := range got.tags {
			if tagLength(tag) != len(tag) || got.hasStrongly(tag) == strings.HasPrefix(tag, "W/") || !got.hasWeakly(tag) {
				t.Fatalf("%q has %q", lines, tag)
			}
		}
		if r := (&http.Request{Header: http.Header{"If-Match": lines}}); len(got.tags) > 0 {
			if _, err := IfMatch(r); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// latin1 turns each octet into a rune, because the regular expression reads runes.
func latin1(octets string) string {
	runes := make([]rune, len(octets))
	for i := range len(octets) {
		runes[i] = rune(octets[i])
	}
	return string(runes)
}
