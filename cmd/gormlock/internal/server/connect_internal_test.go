package server

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestStatement_showsNoPassword(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		"ALTER ROLE a PASSWORD 's3cret'", "create user a with encrypted password 's3cret' login", "CREATE ROLE a PASSWORD E's3cret'",
		"SELECT dblink_connect('host=h user=u password=s3cret dbname=d')", "CREATE SUBSCRIPTION s CONNECTION 'postgres://u:s3cret@h/d' PUBLICATION p",
		"ALTER ROLE a PASSWORD\n  's3cret", "alter role a password 'with ''s3cret'' in it'", "SELECT 'password = s3cret'",
		"CREATE USER MAPPING FOR a SERVER s OPTIONS (user 'u', password 's3cret')", "SELECT 'postgres://u:a@s3cret@h/d'",
		"ALTER ROLE a PASSWORD/**/'s3cret'", "ALTER ROLE a PASSWORD U&'s3cret'", "ALTER ROLE a PASSWORD $$two s3cret words$$", `ALTER ROLE a PASSWORD E'a\'s3cret'`,
		`SELECT '{"password": "s3cret"}'::json`, "SELECT 'postgres://u:a/s3cret@h/d'", "SELECT 'host=h password=''two s3cret words'''", "SELECT 1; ALTER ROLE a\nPassword\n's3cret'",
		"SELECT 'postgres://h/d?user=u&password=s3cret'", "SELECT 'redis://:s3cret@h/1'",
		"SELECT crypt('s3cret', gen_salt('bf'))", "SELECT pgp_sym_encrypt('x', 's3cret')", "SELECT public.pgp_sym_decrypt (data, 's3cret') FROM t", "SELECT hmac(body, 's3cret', 'sha256')",
		"UPDATE users SET passwd = 's3cret'", "UPDATE users SET pass = 's3cret'", "UPDATE clients SET client_secret='s3cret'", "SELECT * FROM users WHERE pwd='s3cret'",
		"COPY t FROM PROGRAM 'curl -u me:s3cret https://h'", "UPDATE keys SET api_key = 's3cret'", "SELECT encrypt(data, 's3cret', 'aes')",
	} {
		if got := Statement(query); strings.Contains(got, "s3cret") || !strings.Contains(got, "***") {
			t.Errorf("%s: %s", query, got)
		}
	}
	for _, harmless := range []string{
		"SELECT * FROM users WHERE id = 1 -- see https://example.com/a", "SELECT * FROM passengers WHERE bypassed", "UPDATE gormlock_fence SET token = token + 1",
	} {
		if got := Statement(harmless); got != harmless {
			t.Errorf("got %s", got)
		}
	}
}

// No part of a password is printed, however broken its string is.
func TestDSN_whatIsWrongQuotesNothing(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://user:s3cr@t3t@host/db", "postgres://user:s3cr/t3t@host/db", "postgres://user:s3cr?t3t@host/db", "postgres://user:s3cr#t3t@host/db",
		"postgres://user:s3cr%t3t@host/db", "postgres://user:s3cr:t3t@host:t3t/db", "postgres://user:x@s3cr/t3t@host/db", "postgres://user:x@s3cr#t3t@host/db",
		"host=h password='s3cr t3t user=u", "password=s3cr t3t", "mysql://user:s3crt3t@host/db", "s3crt3t",
		"postgres://user:s3crt3t@host:99999/db", "postgres://user:s3crt3t@host/db?sslmode=t3t", "postgres://user:s3crt3t@host/db?connect_timeout=t3t",
		"postgres://user:s3crt3t@host/db?sslmode=verify-full&sslrootcert=/nonexistent", "postgres://user:s3crt3t@[host/db",
		"jdbc:postgresql://host/db?user=u&password=s3crt3t", "postgres://user:s3crt3t@host/db?target_session_attrs=t3t", "host=h password=s3crt3t port=t3t",
		"postgres://host/db?password=s3cr&t3t", "postgresql://u:s3crt3t@h:1,h:2,h:3/db?port=1,2", "postgres://h/db?service=nope&password=s3crt3t",
	} {
		c := Target{DSN: dsn}
		_, err := c.Config("test")
		if err == nil {
			if !strings.Contains(dsn, "?password=s3cr&") {
				t.Errorf("%s is accepted", dsn)
			}
			continue
		}
		for _, piece := range []string{"s3cr", "t3t", "%t"} {
			if strings.Contains(err.Error(), piece) {
				t.Errorf("%s: %v", dsn, err)
			}
		}
		if !strings.HasPrefix(err.Error(), "--dsn: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}

func TestDSN_whatIsRightIsRead(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"postgres://u:p%40s%2Fs@h:7/d":                     "u p@s/s h 7 d",
		"postgres://u@h/d?application_name=me@example.com": "u  h 5432 d",
		"postgres://u:p@h1:1,h2:2/d":                       "u p h1 1 d",
		"postgres://[::1]:7/d?user=u":                      "u  ::1 7 d",
		"host=h user=u password='a b' dbname=d port=7":     "u a b h 7 d",
		"postgres://u@/d?host=/run/postgresql":             "u  /run/postgresql 5432 d",
		"postgres://h:7/d?user=u&password=x@y":             "u x@y h 7 d",
	} {
		c, err := (&Target{DSN: dsn}).Config("test")
		if err != nil {
			t.Errorf("%s: %v", dsn, err)
			continue
		}
		if got := show(c); got != want {
			t.Errorf("%s: %s, want %s", dsn, got, want)
		}
	}
}

func show(c *pgx.ConnConfig) string {
	return strings.Join([]string{c.User, c.Password, c.Host, fmt.Sprint(c.Port), c.Database}, " ")
}

func TestDialProblem_isTheLastOfAll(t *testing.T) {
	t.Parallel()
	err := errors.Join(errors.New("first"), errors.Join(errors.New("second"), errors.New("third")))
	if got := dialProblem(err); got != "third" {
		t.Error(got)
	}
}
