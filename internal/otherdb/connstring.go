package otherdb

import "strings"

// Named is the database that a connection string names, nil where it names none. A URL of PostgreSQL names none, nor does a
// list of its keywords.
func Named(connString string) *Database {
	text := strings.ToLower(strings.TrimSpace(connString))
	if strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://") {
		return nil
	}
	keyword, _, _ := strings.Cut(text, "=")
	isList := IsKeyword(strings.TrimSpace(keyword)) // what is within it may be part of a password
	for _, d := range known {
		for _, begin := range d.begins {
			if strings.HasPrefix(text, begin) {
				return d
			}
		}
		for _, part := range d.within {
			if !isList && strings.Contains(text, part) {
				return d
			}
		}
	}
	return nil
}

// IsKeyword reports whether a connection string of PostgreSQL can have this keyword or setting. pgx takes whatever stands
// before the first = of a text for one, such as a connection string of another database with its password.
func IsKeyword(name string) bool { return !strings.ContainsAny(name, "@:/?&;()[]'\"\\ \t\n") }
