package page

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// Span is a duration for people, to about two digits.
func Span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}

// cut shortens text to n characters.
func cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// squeeze shortens text to n characters by cutting its middle, because names differ at both ends.
func squeeze(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	end := (n - 1) / 2
	return string(runes[:n-1-end]) + "…" + string(runes[len(runes)-end:])
}

// number is an integer with commas between thousands.
func number(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
