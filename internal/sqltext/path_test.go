package sqltext_test

import (
	"testing"

	"github.com/gormlock/gormlock/internal/sqltext"
)

func TestRead_renames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"SET search_path TO b":                       true,
		"set local Search_Path = b":                  true,
		`SET SESSION "search_path" TO b`:             true,
		"SET SCHEMA 'b'":                             true,
		"SET LOCAL SCHEMA 'b'":                       true,
		"SET ROLE b":                                 true,
		"SET LOCAL ROLE b":                           true,
		"SET SESSION AUTHORIZATION b":                true,
		"SET LOCAL SESSION AUTHORIZATION b":          true,
		"RESET search_path":                          true,
		"RESET ALL":                                  true,
		"RESET ROLE":                                 true,
		"RESET SESSION AUTHORIZATION":                true,
		"DISCARD ALL":                                true,
		"SELECT set_config('search_path', $1, true)": true,
		"SELECT set_config( 'SEARCH_PATH','b',true)": true,
		"SELECT set_config($1, $2, true)":            true,
		"SELECT 1; SELECT pg_catalog.set_config('role','b',true)": true,
		"/* x */ CREATE TEMP TABLE accounts (id int)":             true,
		"ALTER TABLE a RENAME TO b":                               true,
		"DO 'BEGIN SET LOCAL search_path TO b; END'":              true,
		"CALL turn()": true,
		"SELECT * INTO TEMP accounts FROM b.accounts":               true,
		"WITH b AS (SELECT 1 AS id) SELECT id INTO accounts FROM b": true,
		"INSERT INTO accounts SELECT 1":                             false,
		"WITH b AS (INSERT INTO accounts SELECT 1) SELECT 1":        false,
		"MERGE INTO a USING b ON true WHEN MATCHED THEN DELETE":     false,
		"SELECT set_tenant('b')":                                    true,
		"SELECT public.set_tenant($1) AS t":                         true,
		`SELECT "set_tenant"($1)`:                                   true,
		"SELECT lower('b'), pg_sleep(0), nextval('s'), (1 + 2)":     false,
		"SELECT mine(id) FROM accounts":                             false,
		"SELECT count(*), extract(epoch FROM now())":                false,
		"USE b":                      true,
		"SET LOCAL lock_timeout = 5": false,
		"SET TIME ZONE 'UTC'":        false,
		"SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY": false,
		"RESET lock_timeout":                         false,
		"SELECT set_config('app.tenant', 'b', true)": false,
		"SHOW search_path":                           false,
		"SELECT 'set search_path'":                   false,
		"UPDATE t SET search_path = 1":               false,
	} {
		if got := sqltext.Read(text).Renames; got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestRead_roams(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]bool{ // for the session, and by making tables
		"SET search_path TO b":         {true, false},
		"SET SESSION search_path TO b": {true, false},
		"SET LOCAL search_path TO b":   {false, false},
		"SET LOCAL ROLE b":             {false, false},
		"RESET ALL":                    {true, false},
		"DISCARD ALL":                  {true, false},
		"USE b":                        {true, false},
		"SELECT set_config('search_path', 'b', false)":      {true, false},
		"SELECT 1; CREATE VIEW a AS SELECT 1":               {false, true},
		"DROP TABLE a; SET search_path TO b":                {true, true},
		"SELECT 1 AS id INTO a":                             {false, true},
		`SELECT '\' || '; SET ROLE b`:                       {true, false},
		"UPDATE a SET name = 'set search_path; drop table'": {false, false},
	} {
		if got := sqltext.Read(text); [2]bool{got.Roams, got.Remakes} != want {
			t.Errorf("%q: %v, %v", text, got.Roams, got.Remakes)
		}
	}
}
