package server

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// QuoteText is a text literal that is right under every setting of the server. Characters that cannot be printed are escaped.
func QuoteText(text string) string {
	var b strings.Builder
	prefix := ""
	escape := func(format string, value any) {
		prefix = "E"
		fmt.Fprintf(&b, format, value)
	}
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == '\'':
			b.WriteString("''")
		case r == '\\':
			escape(`\%s`, `\`)
		case unicode.IsPrint(r) && (r != utf8.RuneError || size > 1):
			b.WriteRune(r)
		case size == 1:
			escape(`\x%02x`, text[0])
		case r <= 0xffff:
			escape(`\u%04x`, r)
		default:
			escape(`\U%08x`, r)
		}
		text = text[size:]
	}
	return prefix + "'" + b.String() + "'"
}

// QuoteBytes is an expression for the bytes of text, readable if they are text.
func QuoteBytes(text string) string {
	if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
		return fmt.Sprintf("decode('%s', 'hex')", hex.EncodeToString([]byte(text)))
	}
	return "convert_to(" + QuoteText(text) + ", 'UTF8')"
}
