package compat

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/gormlock/gormlock/lockkey"
)

// bigint is the key with this id under the given name, whose first part is the
// scheme, or an invalid key when the scheme has none for the input.
func bigint(id int64, problem, scheme string, name ...string) lockkey.Key {
	if problem != "" {
		return lockkey.Invalid(scheme + ": " + problem)
	}
	return lockkey.Int64(id).Named(append([]string{scheme}, name...)...)
}

// notUnicode says why a program whose strings are Unicode cannot have one of
// the texts.
func notUnicode(texts ...string) string {
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return "the name is not valid UTF-8"
		}
	}
	return ""
}

// notText says why PostgreSQL cannot have one of the texts. Which bytes above
// 127 are valid is up to the server's encoding.
func notText(texts ...string) string {
	for _, text := range texts {
		if strings.Contains(text, "\x00") {
			return "no PostgreSQL text holds a NUL byte"
		}
	}
	return ""
}

// notDatabase says why no PostgreSQL database has the name. Names of more than
// 63 bytes are cut by the server, so current_database() never shows them.
func notDatabase(database string) string {
	switch {
	case database == "":
		return "the database name is empty"
	case len(database) > 63:
		return "the database name is longer than PostgreSQL's 63 bytes"
	}
	return cmp.Or(notText(database), notUnicode(database))
}
