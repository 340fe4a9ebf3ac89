package terminal

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// OneLine is text that cannot move a terminal's cursor: white space becomes a space, and characters that cannot be printed become escapes.
func OneLine(text string) string {
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

// Cut shortens text to a number of characters.
func Cut(text string, characters int) string {
	if utf8.RuneCountInString(text) <= characters {
		return text
	}
	return string([]rune(text)[:max(characters-1, 0)]) + "…"
}

// Span is a duration for people, in at most two units.
func Span(d time.Duration) string {
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

// Count is a number with its noun: "1 lock", "100,000 locks".
func Count[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Thousands(int64(n)) + " " + noun
}

// Thousands is a number with commas between thousands.
func Thousands(n int64) string {
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

// TrimPrefix removes the prefix of gormlock's packages from an error text.
func TrimPrefix(text string) string {
	return strings.TrimPrefix(text, "gormlock: ")
}
