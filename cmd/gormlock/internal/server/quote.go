package server

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// QuoteText is a text literal, right under every setting of the server.
func QuoteText(text string) string {
	quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	if strings.Contains(text, `\`) {
		return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

// QuoteBytes is an expression for the bytes of text, readable where it is text.
func QuoteBytes(text string) string {
	if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
		return fmt.Sprintf("decode('%s', 'hex')", hex.EncodeToString([]byte(text)))
	}
	return "convert_to(" + QuoteText(text) + ", 'UTF8')"
}
