package server

import (
	"errors"
	"io/fs"
	"regexp"
	"strings"

	"github.com/gormlock/gormlock/internal/otherdb"
)

// schemeOf matches the scheme of a URL, even of an invalid one.
var schemeOf = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.:-]*://`)

const noConnString = "this is no connection string: postgres://user@host/database, or host=… user=… dbname=…"

// ambiguous says why a connection string is refused before it is parsed: it is not certain which part is the password, and a wrong guess would
// print it in an error.
func ambiguous(dsn string) string {
	if other := otherdb.Named(dsn); other != nil {
		return "this leads to " + other.String() + ", and gormlock looks into PostgreSQL: give it the connection string of a PostgreSQL server"
	}
	scheme := schemeOf.FindString(dsn)
	switch scheme {
	case "":
		if dsn != "" && !strings.Contains(dsn, "=") {
			return noConnString
		}
		return ""
	case "postgres://", "postgresql://":
	default:
		return "this is not the URL of a PostgreSQL server: it begins with postgres://"
	}
	rest := dsn[len(scheme):]
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority := rest[:end]
	path, _, _ := strings.Cut(rest[end:], "?")
	userinfo, host, _ := strings.Cut(authority, "@")
	switch {
	case strings.Contains(host, "@"), strings.Contains(path, "@"), strings.Contains(path, "#"), strings.HasPrefix(rest[end:], "#"),
		!strings.Contains(authority, "@") && strings.Contains(rest[end:], "@") && strings.Contains(userinfo, ":") && !ports.MatchString(userinfo):
		return `the URL cannot be read: in a password or name, @ is written %40, / %2F, ? %3F, # %23 and % %25`
	}
	return ""
}

// ports matches a list of hosts, with ports after colons.
var ports = regexp.MustCompile(`^(\[[^\]]*\]|[^:,]*)(:\d*)?(,(\[[^\]]*\]|[^:,]*)(:\d*)?)*$`)

// parseProblem says what is wrong with a connection string, without quoting it. pgx masks passwords that it recognises, but only as a best effort.
func parseProblem(dsn string, err error) string {
	text := err.Error()
	if schemeOf.MatchString(dsn) && strings.Contains(text, ": failed to parse as URL") {
		return `the URL cannot be read: in a password or name, @ is written %40, / %2F, ? %3F, # %23 and % %25`
	}
	if strings.Contains(text, ": failed to parse as keyword/value") {
		return `the list of keyword=value pairs cannot be read: a value with spaces, quotes or backslashes is written 'in quotes', with \' and \\ inside`
	}
	for part, says := range map[string]string{
		": failed to configure TLS": "the TLS settings (sslmode, sslrootcert, sslcert, sslkey) do not work",
		": failed to read service":  "the service cannot be read",
		": invalid port":            "the port is not a number from 1 to 65535",
		"port numbers to":           "there are as many ports as hosts, or one, or none",
		"connect_timeout":           "connect_timeout is not a number of seconds",
		"target_session_attrs":      "target_session_attrs is not any, read-write, read-only, primary, standby or prefer-standby",
		"channel_binding":           "channel_binding is not disable, prefer or require",
		"require_auth":              "require_auth holds no methods of authentication",
		"sslcertmode":               "sslcertmode is not disable, allow or require",
		"protocol_version":          "min_protocol_version or max_protocol_version is none",
	} {
		if strings.Contains(tail(text), part) {
			return says + fileOf(err)
		}
	}
	return "it cannot be read"
}

// tail is the part of pgx's message after the connection string.
func tail(text string) string {
	return text[strings.LastIndex(text, "`")+1:]
}

// fileOf adds the system's error about a file that the connection string names.
func fileOf(err error) string {
	var file *fs.PathError
	if errors.As(err, &file) {
		return ": " + file.Error()
	}
	return ""
}
