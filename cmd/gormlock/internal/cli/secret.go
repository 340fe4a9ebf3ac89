package cli

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

var (
	// secret matches what may be a connection string, or a part of one. No error repeats it.
	secret = regexp.MustCompile(`(?i)://|(password|passwd|pwd)\s*=|[:/][^@]+@.`)
	// connection matches what is almost certainly a connection string: a URL of PostgreSQL or with a password, a list of keyword=value pairs, or
	// the form of MySQL's driver.
	connection = regexp.MustCompile(`(?is)^\s*postgres(ql)?://|://.*:.*@|(password|passwd|pwd)\s*=|:.*@(tcp|unix)\(`)
)

// errMisplaced is for a connection string in a place where none is read.
var errMisplaced = errors.New("a connection string goes behind --dsn, in one argument; here it is neither read nor shown, as it may hold a password")

// withoutSecrets is the text of an error without those arguments that may be connection strings.
func withoutSecrets(text string, args []string) string {
	for _, arg := range args {
		name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		for _, piece := range []string{arg, value, name} {
			if !secret.MatchString(piece) {
				continue
			}
			quoted := strconv.Quote(piece)
			for _, form := range []string{quoted, quoted[1 : len(quoted)-1], piece} {
				text = regexp.MustCompile("(?i)"+regexp.QuoteMeta(form)).ReplaceAllLiteralString(text, "(not shown: a connection string goes behind --dsn)")
			}
		}
	}
	return text
}
