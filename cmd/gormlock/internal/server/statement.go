package server

import (
	"regexp"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
)

// password is where a statement may begin to hold one: CREATE ROLE … PASSWORD '…', and what dblink or a subscription
// connects with. There are too many ways to write a text for a pattern to find where it ends.
var password = regexp.MustCompile(`(?is)(password\s?|://[^\s/:'"]*:).*`)

// Masked is a query up to the first password that it may hold.
func Masked(query string) string { return password.ReplaceAllString(query, "${1}***") }

// Statement is a query for people: one line, and no password in it.
func Statement(query string) string { return Masked(terminal.OneLine(query)) }
