package server

import (
	"regexp"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
)

// password is where a statement may hold one: CREATE ROLE … PASSWORD '…', and what
// dblink or a subscription connects with.
var password = regexp.MustCompile(`(?i)(password\s*(?:=\s*|\s+))(E?'(?:[^']|'')*'?|[^\s'"&;,)]+)|(://[^\s:/@']*:)[^\s/]*(@)`)

// Masked is a query without the passwords in it.
func Masked(query string) string { return password.ReplaceAllString(query, "${1}${3}***${4}") }

// Statement is a query for people: one line, and no password in it.
func Statement(query string) string { return Masked(terminal.OneLine(query)) }
