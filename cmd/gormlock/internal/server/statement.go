package server

import (
	"regexp"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
)

// password is where a statement may begin to hold one: CREATE ROLE … PASSWORD '…', what dblink or a subscription connects with, what
// pgcrypto is called with, the program of a COPY. There are too many ways to write a text for a pattern to find where it ends.
var password = regexp.MustCompile(`(?is)(passw\w*\s?|\bpass\b\s?|\bpwd\b\s?|passphrase\s?|passcode\s?|secret\s?|api_?key\s?` +
	`|crypt\s*\(|\bpgp_\w+\s*\(|\bhmac\s*\(|\bprogram\s?|://[^\s/:'"]*:).*`)

// Masked is a query up to the first password that it may hold.
func Masked(query string) string { return password.ReplaceAllString(query, "${1}***") }

// Statement is a query for people: one line, and no password in it.
func Statement(query string) string { return Masked(terminal.OneLine(query)) }
