package pgtest

import (
	"net/url"
	"strings"
)

// withParam sets a parameter of a connection string, which is a URL or a list of key=value pairs, where the last value of a key counts.
func withParam(dsn, name, value string) (string, error) {
	if !strings.HasPrefix(dsn, "postgres://") && !strings.HasPrefix(dsn, "postgresql://") {
		quoted := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value)
		return dsn + " " + name + "='" + quoted + "'", nil
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", err
	}
	if name == "dbname" {
		u.Path = "/" + value
		return u.String(), nil
	}
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // libpq and pgx read a plus as itself
	return u.String(), nil
}
