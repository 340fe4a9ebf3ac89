package sqltext_test

import (
	"testing"

	"github.com/gormlock/gormlock/internal/sqltext"
)

// A query has a clause where the server reads it as one.
func TestHasClause(t *testing.T) {
	t.Parallel()
	for query, has := range map[string]bool{
		"SELECT * FROM a FOR UPDATE":                               true,
		"SELECT * FROM a -- all\nFOR UPDATE OF a SKIP LOCKED":      true,
		"SELECT * FROM a WHERE b IN (SELECT 1) /* ( */ FOR UPDATE": true,
		`SELECT * FROM a WHERE b = 'c\' FOR UPDATE`:                true,
		`SELECT * FROM a WHERE b = 'c\'d' FOR UPDATE`:              true,
		"SELECT * FROM a":                                                    false,
		"SELECT * FROM a FOR SHARE":                                          false,
		"SELECT * FROM a -- all FOR UPDATE":                                  false,
		"SELECT * FROM a /* all FOR UPDATE":                                  false,
		"SELECT ' FOR UPDATE'":                                               false,
		"SELECT $a$ FOR UPDATE$a$":                                           false,
		"SELECT * FROM (SELECT * FROM a FOR UPDATE) b":                       false,
		`SELECT * FROM a WHERE b = 'c\' OR d = ' FOR UPDATE --' `:            false,
		`SELECT * FROM a WHERE b = 'c\'' FOR UPDATE --' AND 1 = 1 -- '`:      false,
		"SELECT * FROM a WHERE EXISTS (SELECT 1 -- b FOR UPDATE\n)":          false,
		"WITH a AS (SELECT * FROM b FOR UPDATE) SELECT * FROM a":             false,
		"WITH a AS (SELECT * FROM b) SELECT * FROM a FOR UPDATE /* trace */": true,
	} {
		if sqltext.HasClause(query, "FOR UPDATE") != has {
			t.Errorf("%s: it is not %t", query, has)
		}
	}
}
