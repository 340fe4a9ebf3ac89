package lease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

func TestBadInput_atAcquire(t *testing.T) {
	t.Parallel()
	m := open(t, tables(t))
	_, _, shed := shedlock(t)
	k := lockkey.Of("report")
	for name, c := range map[string]struct {
		m    *lease.Manager
		key  lockkey.Key
		ttl  time.Duration
		opts []lease.AcquireOption
		is   error
		says string
	}{
		"no ttl":                  {m: m, key: k, ttl: 0, is: lease.ErrOption, says: "a lease of 0s"},
		"negative ttl":            {m: m, key: k, ttl: -time.Second, is: lease.ErrOption, says: "a lease of -1s"},
		"under the floor":         {m: m, key: k, ttl: 99 * time.Millisecond, is: lease.ErrOption, says: "shorter than 100ms"},
		"under the floor of all":  {m: m, key: k, ttl: time.Microsecond, opts: []lease.AcquireOption{lease.NoRenewal()}, is: lease.ErrOption, says: "shorter than 10ms"},
		"AtLeast beyond the ttl":  {m: m, key: k, ttl: time.Second, opts: []lease.AcquireOption{lease.AtLeast(2 * time.Second)}, is: lease.ErrOption, says: "AtLeast(2s)"},
		"negative AtLeast":        {m: m, key: k, ttl: time.Second, opts: []lease.AcquireOption{lease.AtLeast(-1)}, is: lease.ErrOption, says: "AtLeast(-1ns)"},
		"no Timeout":              {m: m, key: k, ttl: time.Second, opts: []lease.AcquireOption{lease.Timeout(0)}, is: lease.ErrOption, says: "use Try"},
		"no key":                  {m: m, ttl: time.Second, is: lockkey.ErrInvalid, says: "zero Key"},
		"two keys":                {m: m, key: lockkey.Renamed(k, lockkey.Of("old")), ttl: time.Second, is: lease.ErrOption, says: "report, formerly old stands for two locks, and a lease is one row"},
		"a bad key":               {m: m, key: lockkey.Of(1.5), ttl: time.Second, is: lockkey.ErrInvalid, says: "float64"},
		"a name over 1 kB":        {m: m, key: lockkey.Of(strings.Repeat("x", 1025)), ttl: time.Second, is: lease.ErrOption, says: "1025 bytes, more than 1024"},
		"ShedLock: data":          {m: shed, key: k, ttl: time.Second, opts: []lease.AcquireOption{lease.Data([]byte("x"))}, is: lease.ErrOption, says: "no column for it"},
		"ShedLock: no name":       {m: shed, key: lockkey.Int64(7), ttl: time.Second, is: lease.ErrOption, says: "int64(7) has no name"},
		"ShedLock: name too long": {m: shed, key: lockkey.Of(strings.Repeat("é", 65)), ttl: time.Second, is: lease.ErrOption, says: "65 characters, the table has room for 64"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := c.m.Acquire(t.Context(), c.key, c.ttl, c.opts...)
			if !errors.Is(err, c.is) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("Acquire: %v", err)
			}
			_, err = c.m.TryAcquire(t.Context(), c.key, c.ttl, c.opts...)
			if !errors.Is(err, c.is) {
				t.Errorf("TryAcquire: %v", err)
			}
			err = c.m.Do(t.Context(), c.key, c.ttl, func(context.Context) error { panic("it runs") }, c.opts...)
			if !errors.Is(err, c.is) {
				t.Errorf("Do: %v", err)
			}
		})
	}
	// The limits themselves are allowed.
	release(t, acquire(t, m, lockkey.Of(strings.Repeat("x", 1024)), 100*time.Millisecond+time.Minute))
	release(t, acquire(t, shed, lockkey.Of(strings.Repeat("é", 64)), time.Minute))
	option := lease.Data([]byte("twice"))
	release(t, acquire(t, m, k, time.Minute, option))
	release(t, acquire(t, m, k, time.Minute, option))
}

func TestBadInput_options(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t)
	for _, o := range []lease.Option{
		lease.Table(""), lease.Table("a.b.c"), lease.Table(`a"b`), lease.Table("a$b"), lease.Table(strings.Repeat("x", 64)),
		lease.Owner(strings.Repeat("x", 1025)), lease.Owner("a\x00b"), lease.Owner("a\xffb"), lease.Listen(nil),
	} {
		if _, err := lease.New(t.Context(), db, o); !errors.Is(err, lease.ErrOption) {
			t.Errorf("%v", err)
		}
		if err := lease.Migrate(t.Context(), db, o); !errors.Is(err, lease.ErrOption) {
			t.Errorf("Migrate: %v", err)
		}
	}
}

// New refuses what cannot work, and the error says what is wrong.
func TestNew_refusesTables(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ddl  string
		opts []lease.Option
		says string
	}{
		"none at all":             {ddl: "DROP TABLE gormlock_lease", says: "gormlock_lease: it does not exist: lease.Migrate"},
		"no tokens":               {ddl: "DROP TABLE gormlock_fence", says: "gormlock_fence: it does not exist: lease.Migrate"},
		"another name":            {opts: []lease.Option{lease.Table("elsewhere.leases")}, says: `elsewhere.leases: it does not exist: lease.Migrate creates it, given the same lease.Table("elsewhere.leases")`},
		"columns missing":         {ddl: "ALTER TABLE gormlock_lease DROP COLUMN holder, DROP COLUMN data", says: "it lacks the columns data, holder"},
		"a column's type":         {ddl: "ALTER TABLE gormlock_lease ALTER expires_at TYPE timestamp", says: "column expires_at is timestamp without time zone, not timestamp with time zone"},
		"a column more":           {ddl: "ALTER TABLE gormlock_lease ADD tenant text NOT NULL", says: "column tenant is NOT NULL without a default"},
		"no key":                  {ddl: "ALTER TABLE gormlock_lease DROP CONSTRAINT gormlock_lease_pkey", says: "no unique index is on (space, id)"},
		"a key of another kind":   {ddl: "ALTER TABLE gormlock_lease DROP CONSTRAINT gormlock_lease_pkey, ADD UNIQUE (space, id, name)", says: "no unique index is on (space, id)"},
		"a key for later":         {ddl: "ALTER TABLE gormlock_lease DROP CONSTRAINT gormlock_lease_pkey, ADD UNIQUE (space, id) DEFERRABLE", says: "a deferrable unique constraint is on (space, id)"},
		"a second key, for later": {ddl: "ALTER TABLE gormlock_lease ADD UNIQUE (id, space) DEFERRABLE", says: "a deferrable unique constraint is on (space, id)"},
		"a crash empties it":      {ddl: "ALTER TABLE gormlock_lease SET UNLOGGED", says: "unlogged"},
		"ShedLock: none":          {opts: []lease.Option{lease.ShedLock()}, says: "shedlock: it does not exist: lease.Migrate creates it, given the same lease.ShedLock()"},
		"ShedLock: another name": {
			opts: []lease.Option{lease.ShedLock(), lease.Table("locks")}, says: `locks: it does not exist: lease.Migrate creates it, given the same lease.ShedLock() and lease.Table("locks")`,
		},
		"ShedLock: time zones": {
			ddl:  "CREATE TABLE shedlock (name varchar(64) PRIMARY KEY, lock_until timestamptz NOT NULL, locked_at timestamp NOT NULL, locked_by varchar(255) NOT NULL)",
			opts: []lease.Option{lease.ShedLock()}, says: "column lock_until is timestamp with time zone",
		},
		"ShedLock: no room for the owner": {
			ddl:  "CREATE TABLE shedlock (name varchar(64) PRIMARY KEY, lock_until timestamp NOT NULL, locked_at timestamp NOT NULL, locked_by varchar(20) NOT NULL)",
			opts: []lease.Option{lease.ShedLock(), lease.Owner("billing")}, says: "room for 20 characters, the Owner needs 25",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tables(t)
			if _, err := db.ExecContext(t.Context(), c.ddl); err != nil {
				t.Fatal(err)
			}
			_, err := lease.New(t.Context(), db, c.opts...)
			if !errors.Is(err, lease.ErrTable) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A table with more columns, in any order and with any type of text, works too.
func TestNew_acceptsTables(t *testing.T) {
	t.Parallel()
	db := tables(t)
	if _, err := db.ExecContext(t.Context(), `CREATE SCHEMA IF NOT EXISTS "lease Odd"; CREATE TABLE IF NOT EXISTS "lease Odd"."Leases" (LIKE gormlock_lease INCLUDING ALL, note text, made timestamptz NOT NULL DEFAULT now())`); err != nil {
		t.Fatal(err)
	}
	m := open(t, db, lease.Table("lease Odd.Leases"))
	if err := lease.Migrate(t.Context(), db, lease.Table("lease Odd.Leases")); err != nil {
		t.Error(err)
	}
	l := acquire(t, m, lockkey.Of("a"), time.Minute)
	if err := l.Renew(t.Context()); err != nil {
		t.Error(err)
	}
	release(t, l)
	release(t, acquire(t, open(t, db), lockkey.Of("a"), time.Minute)) // in another table it is another lease
	if _, err := db.ExecContext(t.Context(), `DROP SCHEMA "lease Odd" CASCADE`); err != nil {
		t.Error(err)
	}
}

// If the server's settings make it quote all names, New still recognizes the tables.
func TestNew_whereAllNamesAreQuoted(t *testing.T) {
	t.Parallel()
	db := tables(t, pgtest.Param("quote_all_identifiers", "on"))
	if err := lease.Migrate(t.Context(), db, lease.ShedLock()); err != nil {
		t.Fatal(err)
	}
	for _, opts := range [][]lease.Option{nil, {lease.ShedLock()}} {
		release(t, acquire(t, open(t, db, opts...), lockkey.Of("a"), time.Minute))
	}
}

func TestNew_refusesMissingPrivileges(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	db := tables(t, pgtest.Through(dsn))
	exec := func(statement string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	exec("DO $$ BEGIN CREATE ROLE lease_reader; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$")
	exec("DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO lease_reader', current_schema()); END $$")
	t.Cleanup(func() { _, _ = db.ExecContext(context.Background(), "DROP OWNED BY lease_reader") })
	reader := pgtest.SQLDB(t, pgtest.Through(dsn), pgtest.Param("role", "lease_reader"))
	for _, step := range []struct{ grant, says string }{
		{"", "gormlock_lease: this role lacks the privileges SELECT,INSERT,UPDATE"},
		{"GRANT SELECT ON gormlock_lease TO lease_reader", "gormlock_lease: this role lacks the privileges INSERT,UPDATE"},
		{"GRANT SELECT, INSERT, UPDATE ON gormlock_lease TO lease_reader", "gormlock_fence: this role lacks the privileges SELECT,INSERT,UPDATE"},
		{"GRANT SELECT, INSERT, UPDATE ON gormlock_fence TO lease_reader", ""},
	} {
		if step.grant != "" {
			exec(step.grant)
		}
		m, err := lease.New(t.Context(), reader)
		if step.says == "" {
			if err != nil {
				t.Fatal(err)
			}
			release(t, acquire(t, m, lockkey.Of("a"), time.Minute))
			if err := lease.Migrate(t.Context(), reader); err != nil {
				t.Errorf("Migrate asks for rights although the tables are there: %v", err)
			}
			if err := m.Close(t.Context()); err != nil {
				t.Error(err)
			}
			continue
		}
		if !errors.Is(err, lease.ErrTable) || !strings.Contains(fmt.Sprint(err), step.says) {
			t.Errorf("after %q: %v", step.grant, err)
		}
	}
	m := open(t, db)
	exec("DROP TABLE gormlock_fence")
	if _, err := m.Acquire(t.Context(), lockkey.Of("a"), time.Minute); !errors.Is(err, lease.ErrTable) || !strings.Contains(err.Error(), "lease.Migrate") {
		t.Errorf("a table that went: %v", err)
	}
}

func TestNew_refusesServersWithoutWrites(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	tables(t, pgtest.Through(dsn))
	readOnly := pgtest.SQLDB(t, pgtest.Through(dsn), pgtest.Param("default_transaction_read_only", "on"))
	if _, err := lease.New(t.Context(), readOnly); !errors.Is(err, lease.ErrReadOnly) || !strings.Contains(err.Error(), "default_transaction_read_only") {
		t.Errorf("read-only sessions: %v", err)
	}

	primary := pgtest.Fresh(t)
	pool := pgtest.SQLDB(t, pgtest.Through(primary.DSN("postgres")))
	if err := lease.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	standby := pgtest.Standby(t, primary)
	_, err := lease.New(t.Context(), pgtest.SQLDB(t, pgtest.Through(standby.DSN("postgres"))))
	if !errors.Is(err, lease.ErrStandby) || !errors.Is(err, advisory.ErrStandby) || !strings.Contains(err.Error(), "target_session_attrs") {
		t.Errorf("a standby: %v", err)
	}

	m := open(t, pool)
	l := acquire(t, m, lockkey.Of("a"), time.Minute)
	writesEnd(t, primary, "on")
	if _, err := m.TryAcquire(t.Context(), lockkey.Of("b"), time.Minute); !errors.Is(err, lease.ErrReadOnly) {
		t.Errorf("TryAcquire: %v", err)
	}
	if _, err := m.Acquire(t.Context(), lockkey.Of("b"), time.Minute, lease.Timeout(500*time.Millisecond)); !errors.Is(err, lease.ErrLockTimeout) || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("Acquire waits for a server that takes writes: %v", err)
	}
	if err := l.Renew(t.Context()); !errors.Is(err, lease.ErrReadOnly) || l.Err() != nil {
		t.Errorf("Renew: %v, and the lease still runs: %v", err, l.Err())
	}
	if err := l.Release(t.Context()); !errors.Is(err, lease.ErrReadOnly) {
		t.Errorf("Release: %v", err)
	}
	writesEnd(t, primary, "off")
	release(t, acquire(t, m, lockkey.Of("a"), time.Minute)) // the lease that could not be given back is free by now
}

// writesEnd makes all sessions of a server read-only, or undoes that.
func writesEnd(t testing.TB, server *pgserver.Server, setting string) {
	t.Helper()
	admin := pgtest.SQLDB(t, pgtest.Through(server.DSN("postgres")), pgtest.Param("default_transaction_read_only", "off"))
	for _, statement := range []string{"ALTER SYSTEM SET default_transaction_read_only = " + setting, "SELECT pg_reload_conf()"} {
		if _, err := admin.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	db := pgtest.SQLDB(t, pgtest.Through(server.DSN("postgres")))
	for now := ""; now != setting; {
		if err := db.QueryRowContext(t.Context(), "SHOW default_transaction_read_only").Scan(&now); err != nil {
			t.Fatal(err)
		}
	}
	<-time.After(200 * time.Millisecond) // for the sessions that are there
}

// If the server is down, New returns an error. If the pool is closed, Acquire returns one at once.
func TestNew_withoutAServer(t *testing.T) {
	t.Parallel()
	nowhere := pgtest.SQLDB(t, pgtest.Through("postgres://postgres@127.0.0.1:1/postgres"))
	if _, err := lease.New(t.Context(), nowhere); err == nil || !strings.Contains(err.Error(), "look at the server") {
		t.Errorf("%v", err)
	}
	db := tables(t)
	own := pgtest.SQLDB(t, pgtest.Schema())
	m, err := lease.New(t.Context(), own)
	if err != nil {
		t.Fatal(err)
	}
	_ = own.Close()
	if _, err := m.Acquire(t.Context(), lockkey.Of("a"), time.Minute); err == nil || !strings.Contains(err.Error(), "database is closed") {
		t.Errorf("%v", err)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
	_ = db
}
