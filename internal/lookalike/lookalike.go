// Package lookalike knows servers that talk like PostgreSQL and are none, by what their version() says.
package lookalike

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Errors of package advisory, which says what each means.
var (
	ErrServer = errors.New("gormlock: the server only looks like PostgreSQL, its locks may exclude nobody")
	ErrName   = errors.New("not the name of a server")
)

// known are servers by what stands in their version(). All but those that also end like PostgreSQL's are recognised
// without being listed: here they only get their name.
var known = []struct {
	name, marker string
	likePostgres bool // it ends like PostgreSQL's
}{
	{name: "CockroachDB", marker: "CockroachDB"},
	{name: "YugabyteDB", marker: "-YB-", likePostgres: true},
	{name: "Redshift", marker: "Redshift"},
	{name: "Materialize", marker: "aterialize"}, // older ones: materialized
	{name: "PGlite", marker: "compiled by emcc", likePostgres: true},
	{name: "QuestDB", marker: "QuestDB"},
	{name: "CrateDB", marker: "CrateDB"},
	{name: "RisingWave", marker: "RisingWave"},
	{name: "Greenplum", marker: "Greenplum"},
}

// NameOf is the name of the server whose version() is version, "" for PostgreSQL and what is PostgreSQL inside.
func NameOf(version string) string {
	for _, k := range known {
		if strings.Contains(version, k.marker) {
			return k.name
		}
	}
	if strings.HasPrefix(version, "PostgreSQL ") && strings.HasSuffix(version, "-bit") {
		return ""
	}
	name, _, _ := strings.Cut(version, " ")
	return name
}

// Check says what is wrong with a name of a server.
func Check(name string) error {
	if name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" {
		return fmt.Errorf("%w: %q, use the name in the text of ErrServer", ErrName, name)
	}
	return nil
}

// Allows reports whether name is among those that are allowed.
func Allows(allowed []string, name string) bool {
	for _, a := range allowed {
		if strings.EqualFold(a, name) {
			return true
		}
	}
	return false
}

// Condition is true, as SQL, on a server that is no PostgreSQL and not allowed. It costs the server about a microsecond:
// no regular expression.
func Condition(allowed []string) string {
	condition := plain
	for _, name := range allowed {
		condition = "(" + condition + ") AND NOT " + isNamed(name)
	}
	return condition
}

var plain = func() string {
	condition := "version() NOT LIKE 'PostgreSQL %-bit'"
	for _, k := range known {
		if k.likePostgres {
			condition += " OR " + contains(k.marker)
		}
	}
	return condition
}()

// isNamed is true, as SQL, on the server of this name, which was checked.
func isNamed(name string) string {
	for _, k := range known {
		if strings.EqualFold(k.name, name) {
			return contains(k.marker)
		}
	}
	return "lower(left(version(), " + strconv.Itoa(len(name)) + ")) = '" + strings.ToLower(name) + "'"
}

func contains(marker string) string { return "strpos(version(), '" + marker + "') > 0" }

// Says marks a version() in an error of the server: the text is cast to an integer.
const Says = "gormlock server: "

// Raise is SQL, of type integer, that fails with an error that [Read] reads.
const Raise = "CAST('" + Says + "' || version() AS int)"

// Read is the version() in the message of an error, "" where there is none.
func Read(message string) string {
	_, version, ok := strings.Cut(message, Says)
	if !ok {
		return ""
	}
	for _, end := range []string{"\"", "»", "«", "“", "”", "'", "`", "\n", " (SQLSTATE"} {
		version, _, _ = strings.Cut(version, end)
	}
	return strings.TrimSpace(version)
}

// Itself says which server it is.
func Itself(version string) string {
	if version == "" {
		return "it does not say its name; take rows instead: versions, row locks, leases"
	}
	return fmt.Sprintf("it is %s (%s)", NameOf(version), version)
}

// Refusal says which server it is, and how to take locks there nevertheless.
func Refusal(version string) string {
	if version == "" {
		return Itself(version)
	}
	return fmt.Sprintf("%s; see what gormlock doctor finds there, and use AllowServer(%q) to take them all the same", Itself(version), NameOf(version))
}
