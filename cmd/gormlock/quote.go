package main

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// quoteText is a text literal, right under every setting of the server.
func quoteText(text string) string {
	quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	if strings.Contains(text, `\`) {
		return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

// quoteBytes is an expression for the bytes of text, readable where it is text.
func quoteBytes(text string) string {
	if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
		return fmt.Sprintf("decode('%s', 'hex')", hex.EncodeToString([]byte(text)))
	}
	return "convert_to(" + quoteText(text) + ", 'UTF8')"
}

// quoteName is an identifier.
func quoteName(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}
