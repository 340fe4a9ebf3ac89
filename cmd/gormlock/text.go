package main

import (
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// oneLine is text without anything that could move a terminal's cursor: white space
// becomes a space, what cannot be printed its escape.
func oneLine(text string) string {
	var b strings.Builder
	space := false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			space = true
			continue
		case space && b.Len() > 0:
			b.WriteByte(' ')
		}
		space = false
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// password is where a statement may hold one: CREATE ROLE … PASSWORD '…', and what
// dblink or a subscription connects with.
var password = regexp.MustCompile(`(?i)(password\s*(?:=\s*|\s+))(E?'(?:[^']|'')*'?|[^\s'"&;,)]+)|(://[^\s:/@']*:)[^\s/]*(@)`)

// masked is a query without the passwords in it.
func masked(query string) string { return password.ReplaceAllString(query, "${1}${3}***${4}") }

// statement is a query for people: one line, and no password in it.
func statement(query string) string { return masked(oneLine(query)) }

// cut shortens text to so many characters.
func cut(text string, characters int) string {
	if utf8.RuneCountInString(text) <= characters {
		return text
	}
	return string([]rune(text)[:max(characters-1, 0)]) + "…"
}

// span is a duration as people read it: two units at most.
func span(d time.Duration) string {
	seconds := int64(d / time.Second)
	switch {
	case seconds < 60:
		return strconv.FormatInt(max(seconds, 0), 10) + "s"
	case seconds < 3600:
		return units(seconds, 60, "m", 1, "s")
	case seconds < 24*3600:
		return units(seconds, 3600, "h", 60, "m")
	}
	return units(seconds, 24*3600, "d", 3600, "h")
}

func units(seconds, large int64, largeName string, small int64, smallName string) string {
	text := strconv.FormatInt(seconds/large, 10) + largeName
	if rest := seconds % large / small; rest > 0 {
		text += strconv.FormatInt(rest, 10) + smallName
	}
	return text
}

// count is a number with its noun: "1 lock", "100,000 locks".
func count[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return thousands(int64(n)) + " " + noun
}

func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

// trimPrefix is an error without the name that the packages of gormlock begin with.
func trimPrefix(text string) string {
	return strings.TrimPrefix(text, "gormlock: ")
}
