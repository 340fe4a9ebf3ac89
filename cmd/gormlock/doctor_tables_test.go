package main_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/tables"
	"github.com/gormlock/gormlock/lease"
)

// ownDatabase is a database with all tables of gormlock.
func ownDatabase(t *testing.T) (dsn string, admin *party, db *gorm.DB) {
	t.Helper()
	dsn = pgtest.Database(t)
	db = pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Through(dsn))
	if err := gormlock.MigrateAll(db); err != nil {
		t.Fatal(err)
	}
	return dsn, join(t, dsn, "admin"), db
}

// keyed are the columns whose NOT NULL belongs to the primary key.
func keyed(column string) bool { return column == "space" || column == "id" || column == "key" }

// Each column of each table is compared with what the DDL makes of it: type, NOT NULL and default.
func TestDoctor_comparesEachColumn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(c tables.Column) (alter, says string) // nil: this column cannot deviate in this way
		cured  bool                                       // by --apply
	}{
		"null": {func(c tables.Column) (string, string) {
			switch {
			case keyed(c.Name):
				return "", ""
			case c.NotNull:
				return "DROP NOT NULL", "takes NULL"
			}
			return "SET NOT NULL", "is NOT NULL, and must take NULL"
		}, true},
		"default": {func(c tables.Column) (string, string) {
			if c.Default == "" {
				return "", ""
			}
			return "DROP DEFAULT", "has no default, it must be " + c.Default
		}, true},
		"other default": {func(c tables.Column) (string, string) {
			if c.Default == "" {
				return "", ""
			}
			return "SET DEFAULT '2000-01-01'", "has the default '2000-01-01"
		}, true},
		"type": {func(c tables.Column) (string, string) {
			kind := "text"
			switch {
			case keyed(c.Name) && c.Type != "text":
				kind = "numeric"
			case c.Type == "text":
				kind = "character varying(40)"
			case c.Default != "":
				kind = "date"
			}
			using := c.Name + "::" + kind
			if c.Type == "bytea" || c.Type == "boolean" {
				using = "NULL"
			}
			return "TYPE " + kind + " USING " + using, "is " + kind + ", not " + c.Type
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn, admin, db := ownDatabase(t)
			changed := map[string][]string{}
			for _, table := range tables.Own(gormlock.OnceSchema) {
				for _, column := range table.Columns() {
					alter, says := c.change(column)
					if alter == "" {
						continue
					}
					admin.exec(fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s %s", table.Name, column.Name, alter))
					changed[table.Name] = append(changed[table.Name], "its column "+column.Name+" "+says)
				}
			}
			findings := diagnosis(t, dsn)
			for table, says := range changed {
				for _, one := range says {
					has(t, findings, table, "wrong", one)
				}
			}
			if !c.cured {
				return
			}
			on(t, dsn, "doctor", "--apply").is(t, 0, "nothing found")
			mustOnce(t, db, "after the cure")
		})
	}
}

func mustOnce(t *testing.T, db *gorm.DB, key string) {
	t.Helper()
	err := db.Transaction(func(tx *gorm.DB) error {
		_, err := gormlock.Once(tx, key, func(*gorm.DB) (int, error) { return 1, nil })
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func mustLease(t *testing.T, db *gorm.DB, key string) {
	t.Helper()
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	m, err := lease.New(t.Context(), pool)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = m.Close(t.Context()) }()
	if l, err := m.TryAcquire(t.Context(), gormlock.Key(key), time.Minute); err != nil {
		t.Error(err)
	} else if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// Somebody made the table by hand: Once fails on it, or its keys stay for ever.
func TestDoctor_seesATableThatOnceCannotUse(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	admin := join(t, dsn, "admin")
	admin.exec("CREATE TABLE gormlock_once (key text PRIMARY KEY, request bytea, result jsonb NOT NULL, created_at timestamptz, expires_at timestamptz, tenant int NOT NULL)",
		"INSERT INTO gormlock_once (key, result, tenant) VALUES ('old', '1', 1)")
	findings := diagnosis(t, dsn)
	for _, says := range []string{
		"result is jsonb, not json", "result is NOT NULL, and must take NULL", "created_at has no default, it must be now()", "created_at takes NULL",
		"tenant is no column of gormlock's and refuses NULL", "has no index gormlock_once_created_at", "has no index gormlock_once_expires_at",
	} {
		has(t, findings, "gormlock_once", "wrong", says)
	}
	r := on(t, dsn, "doctor", "--apply")
	r.is(t, 1, "result is jsonb", "tenant is no column")
	admin.exec("ALTER TABLE gormlock_once DROP COLUMN tenant, ALTER COLUMN result TYPE json USING result::json")
	lacksFaults(t, dsn)
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Through(dsn))
	mustOnce(t, db, "new")
	var without int64
	if err := db.Table("gormlock_once").Where("created_at IS NULL").Count(&without).Error; err != nil || without != 0 {
		t.Errorf("%d keys would never be swept, %v", without, err)
	}
}

func lacksFaults(t *testing.T, dsn string) {
	t.Helper()
	for _, f := range diagnosis(t, dsn) {
		if f.Status == "wrong" {
			t.Errorf("%+v", f)
		}
	}
}

// The output of --fix can be run twice.
func TestDoctor_fixesCanBeRunAgain(t *testing.T) {
	t.Parallel()
	dsn, admin, _ := ownDatabase(t)
	for _, table := range tables.Own(gormlock.OnceSchema) {
		for _, column := range table.Columns() {
			if table.Definition(column.Name) != "" {
				admin.exec("ALTER TABLE " + table.Name + " DROP COLUMN " + column.Name)
			}
		}
		admin.exec("ALTER TABLE "+table.Name+" DROP CONSTRAINT "+table.Name+"_pkey", "ALTER TABLE "+table.Name+" SET UNLOGGED")
	}
	admin.exec("ALTER TABLE gormlock_lease ADD COLUMN number serial PRIMARY KEY", // the key is another one
		"CREATE TABLE accounts (id int PRIMARY KEY, version bigint)")
	script := on(t, dsn, "doctor", "--fix", "--column", "version").out
	for _, text := range []string{"ADD COLUMN IF NOT EXISTS", "ADD PRIMARY KEY", "CREATE UNIQUE INDEX IF NOT EXISTS gormlock_lease_key", "CREATE INDEX IF NOT EXISTS gormlock_once_expires_at", "SET LOGGED"} {
		if !strings.Contains(script, text) {
			t.Errorf("the script has no %s:\n%s", text, script)
		}
	}
	admin.exec(script, script)
	lacksFaults(t, dsn)
	on(t, dsn, "doctor", "--fix", "--column", "version").is(t, 0, "-- nothing found")
}

// A unique index that ON CONFLICT cannot use, or with more columns, is not a key.
func TestDoctor_seesKeysThatAreNone(t *testing.T) {
	t.Parallel()
	dsn, admin, db := ownDatabase(t)
	for _, c := range []struct{ table, key, makes, says string }{
		{"gormlock_lease", "space, id", "CREATE UNIQUE INDEX other_key ON gormlock_lease (space, id, lower(holder))", "has no unique key on (space, id)"},
		{"gormlock_lease", "space, id", "CREATE UNIQUE INDEX other_key ON gormlock_lease (id) INCLUDE (space)", "has no unique key on (space, id)"},
		{"gormlock_lease", "space, id", "ALTER TABLE gormlock_lease ADD CONSTRAINT other_key PRIMARY KEY (space, id) DEFERRABLE", "is DEFERRABLE"},
		{"gormlock_lease", "space, id", "ALTER TABLE gormlock_lease ADD PRIMARY KEY (space, id), ADD CONSTRAINT other_key UNIQUE (id, space) DEFERRABLE INITIALLY DEFERRED", "is DEFERRABLE"},
		{"gormlock_once", "key", "CREATE UNIQUE INDEX other_key ON gormlock_once (key, (coalesce(result::text, '')))", "has no unique key on (key)"},
		{"gormlock_once", "key", "CREATE UNIQUE INDEX other_key ON gormlock_once (key) WHERE result IS NULL", "has no unique key on (key)"},
	} {
		admin.exec("ALTER TABLE "+c.table+" DROP CONSTRAINT "+c.table+"_pkey", c.makes)
		has(t, diagnosis(t, dsn), c.table, "wrong", c.says)
		script := on(t, dsn, "doctor", "--fix").out
		admin.exec(script, script)
		lacksFaults(t, dsn)
		mustOnce(t, db, c.makes)
		mustLease(t, db, c.makes)
		if strings.Contains(c.makes, "CONSTRAINT") {
			admin.exec("ALTER TABLE " + c.table + " DROP CONSTRAINT other_key")
		}
		admin.exec("DROP INDEX IF EXISTS other_key, "+c.table+"_key", "ALTER TABLE "+c.table+" DROP CONSTRAINT IF EXISTS "+c.table+"_pkey",
			"ALTER TABLE "+c.table+" ADD CONSTRAINT "+c.table+"_pkey PRIMARY KEY ("+c.key+")")
	}
	// An index with more columns than the key needs is a key if they are only included.
	admin.exec("ALTER TABLE gormlock_lease DROP CONSTRAINT gormlock_lease_pkey", "CREATE UNIQUE INDEX other_key ON gormlock_lease (id, space) INCLUDE (owner)")
	has(t, diagnosis(t, dsn), "gormlock_lease", "ok", "complete")
}

// Sweeps delete rows. A program that never sweeps does not need that privilege.
func TestDoctor_namesTheRightToDelete(t *testing.T) {
	t.Parallel()
	dsn, admin, _ := ownDatabase(t)
	staged{dsn: dsn}.plainRole(t)
	admin.exec("GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO gormlock_cli_plain")
	findings := diagnosis(t, strings.Replace(dsn, "postgres@", "gormlock_cli_plain:s3cret@", 1))
	for table, what := range map[string]string{"gormlock_once": "SweepOnce", "gormlock_key_name": "old names"} {
		if f := has(t, findings, table, "warning", "lacks DELETE on it"); !strings.Contains(f.Says, what) || !strings.Contains(f.Cure, "GRANT DELETE ON") {
			t.Errorf("%+v", f)
		}
	}
	for _, table := range []string{"gormlock_lease", "gormlock_fence", "gormlock_schedule"} {
		has(t, findings, table, "ok", "complete")
	}
}

// If a role may not use a schema, its tables are hidden. The output says so, with the GRANT that shows them.
func TestTables_ofASchemaThatTheRoleMayNotUse(t *testing.T) {
	t.Parallel()
	for schema, quoted := range map[string]string{"app": "app", `My "own", schema`: `"My ""own"", schema"`} {
		dsn := pgtest.Database(t)
		admin := join(t, dsn, "admin")
		staged{dsn: dsn}.plainRole(t)
		admin.exec("CREATE SCHEMA "+quoted, `DO $x$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = "$user", %s, public', current_database(), $y$`+quoted+"$y$); END $x$")
		if err := gormlock.MigrateAll(pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Through(dsn))); err != nil {
			t.Fatal(err)
		}
		plain := strings.Replace(dsn, "postgres@", "gormlock_cli_plain:s3cret@", 1)
		grant := "GRANT USAGE ON SCHEMA " + quoted + " TO gormlock_cli_plain"
		on(t, plain, "ls").is(t, 0, "not seen: the tables gormlock_fence, gormlock_key_name, gormlock_lease, gormlock_schedule", grant)
		f := has(t, diagnosis(t, plain), "gormlock_lease", "warning", "is in the schema "+schema+", which this role may not use")
		if !strings.Contains(f.Cure, `GRANT USAGE ON SCHEMA "`) || strings.Contains(f.Cure, "search_path") {
			t.Errorf("%+v", f)
		}
		admin.exec(grant, "GRANT ALL ON ALL TABLES IN SCHEMA "+quoted+" TO gormlock_cli_plain")
		if r := on(t, plain, "ls"); strings.Contains(r.out, "not seen: the table") {
			t.Errorf("%s", r.out)
		}
		has(t, diagnosis(t, plain), "gormlock_lease", "ok", "complete")
	}
}
