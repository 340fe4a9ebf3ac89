package main_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgtest"
)

// P17, L13
func TestDoctor_findsAPooler(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	findings := diagnosis(t, pgtest.StartPgBouncer(t, server.DSN("postgres"), "pool_mode = transaction").DSN())
	f := has(t, findings, "pooler", "wrong", "changes the server connection")
	if !strings.Contains(f.Cure, "session mode") {
		t.Errorf("%+v", f)
	}
	has(t, findings, "exclusion", "note", "not tried")
	findings = diagnosis(t, pgtest.StartPgBouncer(t, server.DSN("postgres"), "pool_mode = session").DSN())
	f = has(t, findings, "pooler", "warning", "a pooler in session mode stands in between")
	if !strings.Contains(f.Cure, "sessionlock.AllowPooler()") {
		t.Errorf("%+v", f)
	}
	has(t, findings, "exclusion", "ok", "refused to another")
	lacks(t, findings, "prepared") // a pooler in session mode keeps prepared statements
}

// Through a pooler in transaction mode, statements that pgx prepares fail at random, unless the connection string prevents it.
func TestDoctor_findsPreparedStatementsThatAPoolerLoses(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	dsn := pgtest.StartPgBouncer(t, server.DSN("postgres"), "pool_mode = transaction").DSN()
	f := has(t, diagnosis(t, dsn), "prepared", "wrong", "the connection string lacks default_query_exec_mode=exec")
	if !strings.Contains(f.Says, "prepared statement") || !strings.Contains(f.Cure, "add default_query_exec_mode=exec") || !strings.Contains(f.Cure, "max_prepared_statements") {
		t.Errorf("%+v", f)
	}
	on(t, dsn, "doctor").is(t, 1, "default_query_exec_mode=exec", "work here once what is found of prepared is cured")
	has(t, diagnosis(t, dsn+"&default_query_exec_mode=cache_statement"), "prepared", "wrong", "lacks default_query_exec_mode=exec")
	for _, mode := range []string{"exec", "simple_protocol"} {
		findings := diagnosis(t, dsn+"&default_query_exec_mode="+mode)
		has(t, findings, "prepared", "ok", "which prepares nothing")
		if f := has(t, findings, "pooler", "wrong", "changes the server connection"); !strings.Contains(f.Cure, "work here as it is") {
			t.Errorf("%+v", f)
		}
	}
	lacks(t, diagnosis(t, server.DSN("postgres")), "prepared") // there is no pooler
}

// broken is a schema with faults that can be cured, and with faults that a person must decide about.
func broken(t *testing.T) (dsn string, admin *party) {
	t.Helper()
	dsn = pgtest.Database(t)
	admin = join(t, dsn, "admin")
	if err := migrateOnce(t, dsn); err != nil {
		t.Fatal(err)
	}
	admin.exec("CREATE TABLE accounts (id int PRIMARY KEY, version bigint)", "INSERT INTO accounts VALUES (1, NULL)",
		"CREATE TABLE nodefault (id int PRIMARY KEY, lock_version int NOT NULL)",
		"ALTER TABLE gormlock_once DROP COLUMN expires_at, DROP CONSTRAINT gormlock_once_pkey", "ALTER TABLE gormlock_once SET UNLOGGED")
	return dsn + "&statement_timeout=300s", admin
}

// --fix prints a script: psql runs it, and the remaining findings are for a person.
func TestDoctor_printsItsCuresAsSQL(t *testing.T) {
	t.Parallel()
	dsn, admin := broken(t)
	const named = "accounts.version,public.nodefault.lock_version"
	r := on(t, dsn, "doctor", "--fix", "--column", named)
	r.is(t, 1, "-- 0 where Hibernate or Rails write too\n"+`UPDATE "public"."accounts" SET "version" = 1 WHERE "version" IS NULL;`, "-- to decide:", `--   ALTER ROLE "postgres" SET statement_timeout = 0;`)
	for line := range strings.SplitSeq(strings.TrimSpace(r.out), "\n") {
		if line != "" && !strings.HasPrefix(line, "--") && !strings.HasSuffix(line, ";") {
			t.Errorf("neither a comment nor a statement: %s", line)
		}
	}
	admin.exec(r.out) // as psql would
	for _, f := range diagnosis(t, dsn) {
		if f.Status == "wrong" || f.Status == "warning" && f.Check != "statement_timeout" {
			t.Errorf("the script did not cure %+v", f)
		}
	}
	r = on(t, strings.TrimSuffix(dsn, "&statement_timeout=300s"), "doctor", "--fix")
	r.is(t, 0, "-- nothing found")
}

func TestDoctor_runsItsCures(t *testing.T) {
	t.Parallel()
	dsn, _ := broken(t)
	r := on(t, dsn, "doctor", "--apply", "--column", "version,lock_version")
	r.is(t, 1, `ran     UPDATE "public"."accounts"`, "ran     ALTER TABLE", "ADD PRIMARY KEY (key); END IF;", "warning statement_timeout", "1 finding")
	if strings.Contains(r.out, "ran     ALTER ROLE") {
		t.Errorf("it decided what is not for it to decide: %s", r.out)
	}
	r = on(t, dsn, "doctor", "--apply", "--ignore", "statement_timeout")
	r.is(t, 0)
	if strings.Contains(r.out, "ran ") {
		t.Errorf("there was nothing left to cure: %s", r.out)
	}
}

// If a cure fails, the output says so, the others are run, and nothing waits for a lock that somebody holds.
func TestDoctor_saysWhichCuresFailed(t *testing.T) {
	t.Parallel()
	dsn, admin := broken(t)
	admin.exec("INSERT INTO gormlock_once (key) VALUES ('a'), ('a')", "BEGIN", "LOCK TABLE nodefault IN ACCESS SHARE MODE")
	r := on(t, dsn, "doctor", "--apply", "--json", "--column", "version,lock_version")
	r.is(t, 1)
	var report struct {
		Applied  []struct{ SQL, Error string }
		Findings []finding
	}
	if err := json.Unmarshal([]byte(r.out), &report); err != nil {
		t.Fatal(err, r.out)
	}
	failed, ran := map[string]string{}, 0
	for _, a := range report.Applied {
		if a.Error == "" {
			ran++
		} else {
			failed[a.SQL] = a.Error
		}
	}
	if len(failed) != 2 || ran != 6 {
		t.Errorf("%d ran, and these failed: %q", ran, failed)
	}
	for sql, want := range map[string]string{`ALTER TABLE "public"."gormlock_once" ADD PRIMARY KEY (key);`: "could not create unique index", `ALTER TABLE "public"."nodefault" ALTER COLUMN "lock_version" SET DEFAULT 0;`: "lock timeout"} {
		for statement, problem := range failed {
			if strings.Contains(statement, sql) && !regexp.MustCompile(want).MatchString(problem) {
				t.Errorf("%s failed with %q, want %s", sql, problem, want)
			}
		}
		if !strings.Contains(r.out, strings.ReplaceAll(sql, `"`, `\"`)) {
			t.Errorf("%s was not run", sql)
		}
	}
	has(t, report.Findings, "gormlock_once", "wrong", "no unique key on (key)")
	has(t, report.Findings, "columns", "warning", "nodefault.lock_version has no default")
}

// A name in a script is only a name, whatever it contains.
func TestDoctor_fixesRunNoNames(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{`x$$; CREATE TABLE public.pwned(); --`, `x$`, `$do$ $do1$`, `it's "one" \ $q$`} {
		dsn := pgtest.Database(t)
		admin := join(t, dsn, "admin")
		quoted := pgx.Identifier{schema}.Sanitize()
		admin.exec("CREATE SCHEMA "+quoted, "CREATE TABLE "+quoted+".gormlock_fence (space smallint NOT NULL, id bigint NOT NULL, name text NOT NULL, token bigint NOT NULL)",
			"DO $x$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = %s', current_database(), "+"$y$"+quoted+"$y$); END $x$")
		script := on(t, dsn, "doctor", "--fix").out
		join(t, dsn, "psql").exec(script)
		if findings := diagnosis(t, dsn); !strings.Contains(script, "ADD PRIMARY KEY") {
			t.Errorf("%s is not mended: %s, %+v", schema, script, findings)
		} else {
			has(t, findings, "gormlock_fence", "ok", "complete")
		}
		var pwned bool
		if err := admin.QueryRow(t.Context(), "SELECT to_regclass('public.pwned') IS NOT NULL").Scan(&pwned); err != nil || pwned {
			t.Errorf("%s was run, %v:\n%s", schema, err, script)
		}
	}
}

// With this setting a backslash in a text is an escape.
func TestDoctor_underOldStrings(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	join(t, dsn, "admin").exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET standard_conforming_strings = off', current_database()); END $$`)
	on(t, dsn, "doctor").is(t, 0, "nothing found")
	on(t, dsn, "ls").is(t, 0, "0 advisory locks held")
	on(t, dsn, "key", `it's \ a`).is(t, 0, "nobody in database")
}

// A name cannot send control sequences to a terminal, neither in the script nor in the report of what was run.
func TestDoctor_fixesPaintNothing(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	join(t, dsn, "admin").exec("CREATE TABLE \"red\x1b[31m\ntable\" (id int PRIMARY KEY, version int NOT NULL)")
	r := on(t, dsn, "doctor", "--fix", "--column", "version")
	r.is(t, 1, "-- to decide:", `--   ALTER TABLE "public"."red\x1b[31m`)
	ran := on(t, dsn, "doctor", "--apply", "--column", "version")
	ran.is(t, 0, `ran     ALTER TABLE "public"."red\x1b[31m table"`, "nothing found")
	if strings.Contains(r.out+ran.out, "\x1b") {
		t.Errorf("%q\n%q", r.out, ran.out)
	}
}
