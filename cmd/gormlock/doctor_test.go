package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
)

// finding is a finding of the doctor, as JSON.
type finding struct {
	Check, Status, Says, Cure string
	Fix                       []string
}

// diagnosis returns the findings of the doctor, and checks the exit code.
func diagnosis(t *testing.T, dsn string, args ...string) []finding {
	t.Helper()
	r := on(t, dsn, append([]string{"doctor", "--json"}, args...)...)
	var d struct {
		Findings []finding
		Found    int
	}
	if err := json.Unmarshal([]byte(r.out), &d); err != nil {
		t.Fatal(err, r.out, r.stderr)
	}
	if (d.Found > 0) != (r.code == 1) || r.code == 2 {
		t.Errorf("%d findings and exit code %d", d.Found, r.code)
	}
	return d.Findings
}

// has returns the finding of a check with a text, which must exist.
func has(t *testing.T, findings []finding, check, status, says string) finding {
	t.Helper()
	for _, f := range findings {
		if f.Check == check && f.Status == status && strings.Contains(f.Says, says) {
			if status != "ok" && status != "note" && f.Cure == "" {
				t.Errorf("no cure: %+v", f)
			}
			return f
		}
	}
	t.Errorf("no finding %s of %s that says %q among\n%+v", status, check, says, findings)
	return finding{}
}

// lacks fails the test if a check has a finding.
func lacks(t *testing.T, findings []finding, check string) {
	t.Helper()
	for _, f := range findings {
		if f.Check == check {
			t.Errorf("it should find nothing of %s: %+v", check, f)
		}
	}
}

func TestDoctor_findsNothingOnAServerAsItComes(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	r := on(t, dsn, "doctor")
	r.is(t, 0, "nothing found", "pooler", "standby: the server is a primary", "exclusion: a lock of one connection is refused to another")
	findings := diagnosis(t, dsn)
	has(t, findings, "timeouts", "ok", "idle_session_timeout")
	has(t, findings, "client_connection_check_interval", "note", "granted the lock for nobody")
	has(t, findings, "gormlock_fence", "note", "does not exist")
	if r := on(t, dsn, "doctor", "--quiet"); r.code != 0 || r.out != "" {
		t.Errorf("--quiet on a sound server: %d %q", r.code, r.out)
	}
	if r := (program{args: []string{"doctor", dsn}}).run(t); r.code != 0 {
		t.Errorf("with the DSN as an argument: %d %s", r.code, r.stderr)
	}
}

// P13, P1, L14
func TestDoctor_findsTimeoutsThatDefeatSessionLocks(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	all := map[string]string{
		"idle_session_timeout":                "ends a session that holds a session lock",
		"idle_in_transaction_session_timeout": "with every lock of both",
		"statement_timeout":                   "can be held after that error",
		"lock_timeout":                        "can be held after that error",
	}
	var version int
	if err := pgtest.Conn(t).QueryRow(t.Context(), "SELECT current_setting('server_version_num')::int").Scan(&version); err != nil {
		t.Fatal(err)
	}
	if version >= 170000 {
		all["transaction_timeout"] = "ends a session whose transaction lasts that long"
	}
	for name, does := range all {
		f := has(t, diagnosis(t, dsn+"&"+name+"=300s"), name, "warning", "5m0s in this session (from the connection itself): it ends")
		if !strings.Contains(f.Says, does) || !strings.Contains(f.Cure, `ALTER ROLE "postgres" SET `+name+" = 0") {
			t.Errorf("%+v", f)
		}
		on(t, dsn+"&"+name+"=300s", "doctor", "--ignore", name).is(t, 0, "ignored "+name)
	}
	has(t, diagnosis(t, dsn, "--ignore", "statement_timeuot,timeouts"), "ignore", "warning", "--ignore statement_timeuot names no check")
}

func TestDoctor_findsTimeoutsOfOtherRoles(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	dsn := server.DSN("postgres")
	join(t, dsn, "admin").exec(`CREATE ROLE "shop app"`, `ALTER ROLE "shop app" SET idle_session_timeout = '5min'`,
		`ALTER ROLE "shop app" IN DATABASE postgres SET statement_timeout = '3s'`, `ALTER ROLE "shop app" SET lock_timeout = '0'`,
		"ALTER ROLE postgres SET lock_timeout = '7s'")
	findings := diagnosis(t, dsn)
	f := has(t, findings, "idle_session_timeout", "warning", "5min for the role shop app")
	if !strings.HasPrefix(f.Cure, `ALTER ROLE "shop app" SET idle_session_timeout = 0`) {
		t.Errorf("%+v", f)
	}
	f = has(t, findings, "statement_timeout", "warning", "3s for the role shop app")
	if !strings.HasPrefix(f.Cure, `ALTER ROLE "shop app" IN DATABASE "postgres" SET statement_timeout = 0`) {
		t.Errorf("%+v", f)
	}
	has(t, findings, "lock_timeout", "warning", "7s in this session (from the role): it ends")
	for _, f := range findings {
		if f.Check == "lock_timeout" && strings.Contains(f.Says, "for the role") {
			t.Errorf("0 is off, and this session's own is said already: %+v", f)
		}
	}
}

// The texts about settings can be pasted into psql.
func TestDoctor_curesOfSettingsAreSQL(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t, pgserver.Setting("idle_session_timeout", "300s"), pgserver.Setting("tcp_keepalives_idle", "7200"))
	dsn := server.DSN("postgres")
	admin := join(t, dsn, "admin")
	admin.exec("CREATE ROLE app", "ALTER ROLE app SET lock_timeout = '3s'")
	findings := diagnosis(t, dsn)
	for _, f := range []finding{
		has(t, findings, "idle_session_timeout", "warning", "5m0s in this session"),
		has(t, findings, "lock_timeout", "warning", "3s for the role app"),
		has(t, findings, "client_connection_check_interval", "note", "0: a request"),
		has(t, findings, "network", "note", "tcp_keepalives_idle 2h0m0s"),
	} {
		admin.exec(strings.Split(f.Cure, "\n")...)
	}
	findings = diagnosis(t, dsn)
	has(t, findings, "timeouts", "ok", "idle_session_timeout")
	has(t, findings, "client_connection_check_interval", "ok", "2s")
	has(t, findings, "network", "ok", "keeps its locks for about 1m30s")
	lacks(t, findings, "lock_timeout") // this was cured
}

// P14
func TestDoctor_findsAStandby(t *testing.T) {
	t.Parallel()
	standby := pgtest.Standby(t, pgtest.Fresh(t))
	findings := diagnosis(t, standby.DSN("postgres"))
	has(t, findings, "standby", "wrong", "grants what its primary holds")
	has(t, findings, "exclusion", "note", "not tried")
}

// P18: the doctor tries the engine, and does not trust its version.
func TestDoctor_findsAnEngineWhoseLocksExcludeNobody(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	join(t, server.DSN("postgres"), "admin").exec(
		`CREATE OR REPLACE FUNCTION pg_catalog.pg_try_advisory_lock(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'`)
	f := has(t, diagnosis(t, server.DSN("postgres")), "exclusion", "wrong", "advisory locks exclude nobody here")
	if !strings.Contains(f.Says, "pg_try_advisory_lock answered t where it must say f") {
		t.Errorf("%+v", f)
	}
}

// P16, L9
func TestDoctor_findsAFullLockTable(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t, pgserver.Setting("max_locks_per_transaction", "10"), pgserver.Setting("max_connections", "20"),
		pgserver.Setting("max_prepared_transactions", "0"))
	dsn := server.DSN("postgres")
	holder := join(t, dsn, "holder")
	has(t, diagnosis(t, dsn), "room", "ok", "of about 200 places")
	holder.exec("SELECT pg_advisory_lock(k) FROM generate_series(1, 110) AS k")
	has(t, diagnosis(t, dsn), "room", "warning", "55 %")
	holder.exec("SELECT pg_advisory_lock(k) FROM generate_series(111, 180) AS k")
	f := has(t, diagnosis(t, dsn), "room", "wrong", "53200")
	if !strings.Contains(f.Cure, "max_locks_per_transaction = 40") {
		t.Errorf("%+v", f)
	}
}

// V6: AutoMigrate adds a nullable column without a default.
func TestDoctor_findsVersionColumnsThatLie(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	admin := join(t, dsn, "admin")
	admin.exec(
		`CREATE TABLE sound (id int PRIMARY KEY, version bigint NOT NULL DEFAULT 1)`,
		`CREATE TABLE nullable (id int PRIMARY KEY, version int DEFAULT 1)`,
		`CREATE TABLE "no default" (id int PRIMARY KEY, lock_version int NOT NULL)`,
		`CREATE TABLE neither (id int PRIMARY KEY, revision smallint, version text)`,
		`INSERT INTO neither VALUES (1, NULL)`,
		`CREATE TABLE schema_migrations (version bigint PRIMARY KEY)`, // golang-migrate's table
		`CREATE VIEW v AS SELECT version FROM nullable`,
		`CREATE TABLE parts (id int, version int NOT NULL) PARTITION BY LIST (id)`, `CREATE TABLE part PARTITION OF parts DEFAULT`,
	)
	findings := diagnosis(t, dsn, "--column", "revision", "--column", "absent")
	has(t, findings, "columns", "ok", "1 version column with a default and without NULL")
	has(t, findings, "columns", "warning", "no table has a column absent of integers or times")
	var found []string
	for says, cure := range map[string]string{
		"public.nullable.version is nullable":            `UPDATE "public"."nullable" SET "version" = 1 WHERE "version" IS NULL;`,
		"public.no default.lock_version has no default":  `ALTER TABLE "public"."no default" ALTER COLUMN "lock_version" SET DEFAULT 0;`,
		"public.neither.revision is nullable: no":        `ALTER COLUMN "revision" SET DEFAULT 1, ALTER COLUMN "revision" SET NOT NULL;`,
		"public.parts.version has no default: a program": `ALTER TABLE "public"."parts" ALTER COLUMN "version" SET DEFAULT 1;`,
	} {
		f := has(t, findings, "columns", "warning", says)
		if !strings.Contains(f.Cure, cure) {
			t.Errorf("%+v has not the cure %s", f, cure)
		}
		found = append(found, f.Cure)
	}
	for _, f := range findings {
		if strings.Contains(f.Says, "schema_migrations") || strings.Contains(f.Says, ".v.") || strings.Contains(f.Says, ".part.") {
			t.Errorf("found by mistake: %+v", f)
		}
	}
	// The cures work.
	for _, cure := range found {
		admin.exec(regexp.MustCompile(` -- .*`).ReplaceAllString(cure, ""))
	}
	on(t, dsn, "doctor", "--column", "revision").is(t, 0, "5 version columns with a default and without NULL")
}

// update writes to a table in a loop while the doctor looks.
func update(t *testing.T, dsn string, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = conn.Close(context.Background()) }()
		for ctx.Err() == nil {
			for _, sql := range statements {
				if _, err := conn.Exec(ctx, sql); err != nil && ctx.Err() == nil {
					t.Errorf("%s: %v", sql, err)
					return
				}
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func TestDoctor_findsWritesThatKeepTheVersion(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	const versioned = "balance int NOT NULL DEFAULT 0, version bigint NOT NULL DEFAULT 1"
	join(t, dsn, "admin").exec(
		`CREATE TABLE bumped (id int PRIMARY KEY, `+versioned+`)`, `INSERT INTO bumped SELECT generate_series(1, 20)`,
		`CREATE TABLE forgotten (tenant text, id int, `+versioned+`, PRIMARY KEY (tenant, id))`, `INSERT INTO forgotten SELECT 'it''s', generate_series(1, 20)`,
		`CREATE TABLE untouched (id uuid PRIMARY KEY, `+versioned+`)`, `INSERT INTO untouched VALUES (gen_random_uuid())`,
		`CREATE TABLE keyless (id int, `+versioned+`)`,
		`CREATE TABLE empty (id int PRIMARY KEY, `+versioned+`)`,
		`CREATE TYPE color AS ENUM ('red')`, `CREATE TABLE enums (c color PRIMARY KEY, `+versioned+`)`, `INSERT INTO enums VALUES ('red')`,
		`CREATE TABLE large (id int PRIMARY KEY, `+versioned+`)`, `INSERT INTO large SELECT generate_series(1, 50000)`,
	)
	update(t, dsn, "UPDATE bumped SET balance = balance + 1, version = version + 1", "UPDATE forgotten SET balance = balance + 1 WHERE id = 7",
		"UPDATE enums SET balance = balance + 1", "UPDATE large SET balance = balance + 1 WHERE id > 49990")
	findings := diagnosis(t, dsn, "--observe", "500ms", "--sample", "1000")
	f := has(t, findings, "writes", "wrong", "public.forgotten.version: 1 of 1 written row kept the version, such as the key it's,7 (20 rows watched for 500ms)")
	if !strings.Contains(f.Cure, `CREATE TRIGGER "gormlock_version_forgotten"`) {
		t.Errorf("%+v", f)
	}
	has(t, findings, "writes", "wrong", "public.enums.version: 1 of 1 written row")
	has(t, findings, "writes", "ok", "public.bumped.version: 20 written rows, each moved the version (20 rows")
	has(t, findings, "writes", "ok", "public.untouched.version: 0 written rows")
	has(t, findings, "writes", "ok", "public.empty.version: 0 written rows")
	has(t, findings, "writes", "note", "public.keyless.version was not watched: it has no primary key")
	large := has(t, findings, "writes", "wrong", "public.large.version: ") // its pages also hold dead rows of the updates
	if !regexp.MustCompile(`\((\d{3}|1,000) rows of about (4[5-9]|[5-9][0-9]),\d{3} watched`).MatchString(large.Says) {
		t.Errorf("what was sampled is not said: %s", large.Says)
	}
	// The trigger is the cure.
	_, trigger, _ := strings.Cut(f.Cure, "VersionTrigger:\n")
	join(t, dsn, "admin").exec(trigger)
	has(t, diagnosis(t, dsn, "--observe", "300ms"), "writes", "ok", "public.forgotten.version: 1 written row, each moved the version")
}

func TestDoctor_saysWhatItMayNotWatch(t *testing.T) {
	t.Parallel()
	s := stage(t)
	s.plainRole(t)
	join(t, s.dsn, "admin").exec("CREATE TABLE secret (id int PRIMARY KEY, version int NOT NULL DEFAULT 1)")
	dsn := strings.Replace(s.dsn, "postgres@", "gormlock_cli_plain:s3cret@", 1)
	has(t, diagnosis(t, dsn, "--observe", "10ms"), "writes", "note", "public.secret.version was not watched: this role may not read it: GRANT SELECT")
}

func migrateOnce(t *testing.T, dsn string) error {
	t.Helper()
	return gormlock.MigrateOnce(pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Through(dsn)))
}

func TestDoctor_looksAtTheTablesOfGormlock(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	db := pgtest.SQLDB(t, pgtest.Through(dsn))
	for _, migrate := range []func() error{
		func() error { return lease.Migrate(t.Context(), db) }, // this also creates the table of package fence
		func() error { return inspect.Migrate(t.Context(), db) },
		func() error { return migrateOnce(t, dsn) },
	} {
		if err := migrate(); err != nil {
			t.Fatal(err)
		}
	}
	findings := diagnosis(t, dsn)
	for _, table := range []string{"gormlock_fence", "gormlock_lease", "gormlock_schedule", "gormlock_once", "gormlock_key_name"} {
		has(t, findings, table, "ok", "complete, with 0 rows")
	}
	admin := join(t, dsn, "admin")
	for sql, want := range map[string]finding{
		"ALTER TABLE gormlock_fence SET UNLOGGED":                                      {fence.Table, "wrong", "is UNLOGGED", `SET LOGGED`, nil},
		"ALTER TABLE gormlock_fence DROP CONSTRAINT gormlock_fence_pkey":               {fence.Table, "wrong", "no unique key on (space, id)", "ADD PRIMARY KEY", nil},
		"ALTER TABLE gormlock_lease DROP COLUMN holder":                                {"gormlock_lease", "wrong", "has no column holder", "or two programs hold one lease", nil},
		"ALTER TABLE gormlock_once DROP COLUMN expires_at":                             {"gormlock_once", "wrong", "has no column expires_at", "ADD COLUMN IF NOT EXISTS expires_at timestamptz", nil},
		"ALTER TABLE gormlock_once DROP COLUMN result":                                 {"gormlock_once", "wrong", "has no column result", "do not make the table anew, or requests that were done are done again", nil},
		"ALTER TABLE gormlock_once DROP CONSTRAINT gormlock_once_pkey":                 {"gormlock_once", "wrong", "no unique key on (key)", "ADD PRIMARY KEY (key)", nil},
		"ALTER TABLE gormlock_once SET UNLOGGED":                                       {"gormlock_once", "wrong", "is UNLOGGED: after a crash requests that were done are done again", "SET LOGGED", nil},
		"CREATE SCHEMA other; CREATE TABLE other.gormlock_fence (LIKE gormlock_fence)": {fence.Table, "warning", "is in 2 schemas: public, other", "keep one", nil},
		"CREATE SCHEMA away; ALTER TABLE gormlock_fence SET SCHEMA away":               {fence.Table, "warning", "is in the schema away, where the search_path", "search_path", nil},
	} {
		admin.exec(strings.Split(sql, "; ")...)
		f := has(t, diagnosis(t, dsn), want.Check, want.Status, want.Says)
		if !strings.Contains(f.Cure, want.Cure) {
			t.Errorf("%+v has not the cure %q", f, want.Cure)
		}
		admin.exec("DROP SCHEMA IF EXISTS other, away CASCADE", "DROP TABLE IF EXISTS gormlock_fence, gormlock_lease, gormlock_once")
		if err := errors.Join(lease.Migrate(t.Context(), db), migrateOnce(t, dsn)); err != nil {
			t.Fatal(err)
		}
	}
	s := staged{dsn: dsn}
	s.plainRole(t)
	plain := strings.Replace(dsn, "postgres@", "gormlock_cli_plain:s3cret@", 1)
	f := has(t, diagnosis(t, plain), "gormlock_fence", "warning", "this role lacks SELECT, INSERT, UPDATE on it")
	admin.exec("ALTER TABLE gormlock_fence ENABLE ROW LEVEL SECURITY", strings.Split(f.Cure, ";")[0])
	has(t, diagnosis(t, plain), "gormlock_fence", "wrong", "row level security")
}
