package server

import (
	"regexp"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
)

// password matches where a password may begin in a statement: CREATE ROLE … PASSWORD '…', connection strings of dblink or a subscription, arguments
// of pgcrypto, the program of a COPY. There are too many ways to write a text, so no pattern can find where it ends.
var password = regexp.MustCompile(`(?is)(passw\w*\s?|\bpass\b\s?|\bpwd\b\s?|passphrase\s?|passcode\s?|secret\s?|api_?key\s?` +
	`|crypt\s*\(|\bpgp_\w+\s*\(|\bhmac\s*\(|\bprogram\s?|://[^\s/:'"]*:).*`)

// Masked is a query up to the first possible password.
func Masked(query string) string { return password.ReplaceAllString(query, "${1}***") }

// Statement is a query for people: one line, and no password in it.
func Statement(query string) string { return Masked(terminal.OneLine(query)) }
