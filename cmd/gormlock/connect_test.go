package main_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// parts returns a connection string as PG* variables.
func parts(t *testing.T, dsn string) (env []string, c *pgx.ConnConfig) {
	t.Helper()
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return []string{"PGHOST=" + c.Host, fmt.Sprint("PGPORT=", c.Port), "PGUSER=" + c.User, "PGDATABASE=" + c.Database, "PGSSLMODE=disable"}, c
}

// --dsn is used before DATABASE_URL, and that before the variables of libpq.
func TestServer_isFoundInOrder(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	env, c := parts(t, dsn)
	nowhere := "postgres://127.0.0.1:1/nowhere"
	for name, p := range map[string]program{
		"--dsn":           {args: []string{"ls", "--dsn", dsn}, env: append(env, "DATABASE_URL="+nowhere)},
		"--dsn after":     {args: []string{"ls", "--json", "--dsn=" + dsn}, env: []string{"DATABASE_URL=" + nowhere}},
		"DATABASE_URL":    {args: []string{"ls"}, env: []string{"DATABASE_URL=" + dsn, "PGPORT=1"}},
		"PG variables":    {args: []string{"ls"}, env: env},
		"keyword = value": {args: []string{"ls", "--dsn", fmt.Sprintf("host=%s port=%d user=%s dbname=%s sslmode=disable", c.Host, c.Port, c.User, c.Database)}},
	} {
		if r := p.run(t); r.code != 0 || !strings.Contains(r.out, c.Database) {
			t.Errorf("%s: %d\n%s%s", name, r.code, r.out, r.stderr)
		}
	}
	file := filepath.Join(t.TempDir(), "services")
	service := fmt.Sprintf("[shop]\nhost=%s\nport=%d\nuser=%s\ndbname=%s\nsslmode=disable\n", c.Host, c.Port, c.User, c.Database)
	if err := os.WriteFile(file, []byte(service), 0o600); err != nil {
		t.Fatal(err)
	}
	program{args: []string{"ls"}, env: []string{"PGSERVICE=shop", "PGSERVICEFILE=" + file}}.run(t).is(t, 0, c.Database)
}

func TestServer_thatIsNotThereIsOneLine(t *testing.T) {
	t.Parallel()
	env, c := parts(t, pgtest.DSN(t))
	there := net.JoinHostPort(c.Host, fmt.Sprint(c.Port))
	for _, command := range [][]string{{"ls"}, {"watch"}, {"why", "1"}, {"cancel", "1"}, {"terminate", "1"}, {"doctor"}} {
		on(t, "postgres://app:s3cret@127.0.0.1:1/shop", command...).is(t, 2, "cannot connect to 127.0.0.1:1 as app, database shop (from DATABASE_URL)", "connection refused")
		on(t, "postgres://"+c.User+"@"+there+"/nowhere?sslmode=disable", command...).is(t, 2, `database "nowhere" does not exist (3D000)`)
	}
	program{args: []string{"ls"}, env: append(env, "PGDATABASE=nowhere")}.run(t).is(t, 2, "(from the PG* variables)")
	on(t, "postgres://u@127.0.0.1:1,127.0.0.1:2/d", "ls").is(t, 2, "127.0.0.1:1, 127.0.0.1:2")
	on(t, "postgres://"+c.User+"@"+there+"/"+c.Database+"?sslmode=disable&pool=5", "ls").is(t, 2, "pool", "leave that parameter out")
	on(t, "postgres://"+c.User+"@"+there+"/"+c.Database+"?sslmode=require", "ls").is(t, 2, "TLS")
	r := program{args: []string{"ls"}}.run(t)
	r.is(t, 2, "name a server with --dsn, DATABASE_URL or PGHOST")
}

// Passwords are never printed, whether they are right, wrong or encoded, and no part of one is printed from a string that cannot be parsed.
func TestPassword_isNeverPrinted(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	const password = "s3cr%t/p@ss"
	admin := join(t, server.DSN("postgres"), "admin")
	admin.exec("CREATE ROLE app LOGIN PASSWORD '"+password+"'", "SET password_encryption = 'scram-sha-256'")
	demandPasswords(t, server, admin)
	at := net.JoinHostPort(server.Host(), fmt.Sprint(server.Port()))
	encoded := url.QueryEscape(password)
	for _, dsn := range []string{
		"postgres://app:" + encoded + "@" + at + "/postgres?sslmode=disable",
		"postgres://app:" + encoded + "x@" + at + "/postgres?sslmode=disable",
		"postgres://app:" + encoded + "@" + at + "/nowhere?sslmode=disable",
		"postgres://app:" + encoded + "@" + at + "/postgres?sslmode=require",
		"postgres://app:" + encoded + "@127.0.0.1:1/postgres",
		"postgres://app:" + encoded + "@" + at + "/postgres?sslmode=nonsense",
		"postgres://app:" + password + "@" + at + "/postgres",
		"postgres://" + at + "/postgres?sslmode=disable&user=app&password=" + encoded,
		"postgres://" + at + "/postgres?sslmode=disable&user=app&pass%77ord=" + encoded + "x",
		"host=" + server.Host() + " port=1 user=app password='" + password + "'",
		"host=" + server.Host() + " user=app password='" + password,
	} {
		for name, r := range map[string]result{
			"ls":          on(t, dsn, "ls", "--json"),
			"ls --dsn":    offline(t, "ls", "--dsn", dsn),
			"doctor DSN":  offline(t, "doctor", dsn),
			"key":         on(t, dsn, "key", "a"),
			"watch --dsn": offline(t, "watch", "--count", "1", "--dsn="+dsn),
		} {
			for _, piece := range []string{"s3cr", "p@ss", "p%40ss", "2Fp", encoded} {
				if strings.Contains(r.out+r.stderr, piece) {
					t.Errorf("%s of %s prints %q:\n%s%s", name, dsn, piece, r.out, r.stderr)
				}
			}
		}
	}
	good := "postgres://app:" + encoded + "@" + at + "/postgres?sslmode=disable"
	on(t, good, "ls").is(t, 0, "0 advisory locks held")
	wrong := strings.Replace(good, encoded, "wr0ng", 1)
	r := on(t, wrong, "ls")
	r.is(t, 2, `password authentication failed for user "app" (28P01)`)
	program{args: []string{"ls"}, env: []string{"DATABASE_URL=" + strings.Replace(good, ":"+encoded, "", 1), "PGPASSWORD=" + password}}.run(t).is(t, 0)
}

// demandPasswords makes a server require the password of the role app.
func demandPasswords(t *testing.T, server *pgserver.Server, admin *party) {
	t.Helper()
	var file string
	if err := admin.QueryRow(t.Context(), "SHOW hba_file").Scan(&file); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append([]byte("host all app all scram-sha-256\n"), old...), 0o600); err != nil {
		t.Fatal(err)
	}
	admin.exec("SELECT pg_reload_conf()")
	c, err := pgx.ParseConfig(server.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	c.User = "app"
	eventually(t, "demand for a password", func() (bool, string) {
		conn, err := pgx.ConnectConfig(t.Context(), c)
		if err == nil {
			_ = conn.Close(t.Context())
			return false, "none"
		}
		return true, ""
	})
}

// Passwords in statements are not shown either.
func TestPassword_ofStatementsIsMasked(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	p := join(t, dsn, "admin")
	p.exec("SELECT pg_advisory_lock(1) /* ALTER ROLE a PASSWORD 's3cret' */")
	for _, args := range [][]string{{"ls"}, {"ls", "--json"}, {"why", p.arg()}, {"why", p.arg(), "--json"}, {"key", "--scheme", "int64", "1", "--json"}, {"cancel", p.arg()}} {
		r := on(t, dsn, args...)
		if strings.Contains(r.out+r.stderr, "s3cret") || !strings.Contains(r.out, "PASSWORD ***") {
			t.Errorf("%s:\n%s%s", args, r.out, r.stderr)
		}
	}
}
