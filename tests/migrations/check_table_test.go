package migrations_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	checkedRow struct {
		ID      int64
		Name    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	checkedPair struct {
		A       int64 `gorm:"primaryKey"`
		B       int64 `gorm:"primaryKey"`
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
)

func (checkedRow) TableName() string  { return "checked" }
func (checkedPair) TableName() string { return "checked" }

// Check looks at what the tables of others lack.
func TestCheck_ofATableOfOthers(t *testing.T) {
	t.Parallel()
	const version = "version bigint NOT NULL DEFAULT 1"
	for _, c := range []struct{ makes, wrong string }{
		{"CREATE TABLE checked (id bigint PRIMARY KEY, name text, " + version + ")", ""},
		{"CREATE TABLE checked (id bigint, name text, " + version + "); CREATE UNIQUE INDEX ON checked (id) INCLUDE (name)", ""},
		{"CREATE TABLE checked (id bigint NOT NULL, name text, " + version + ", UNIQUE (id))", ""},
		{"CREATE TABLE checked (id bigint, name text, " + version + ") PARTITION BY HASH (id)", ""},
		{"CREATE TABLE base (id bigint PRIMARY KEY, name text, " + version + "); CREATE VIEW checked AS SELECT * FROM base", ""},
		{"CREATE TABLE checked (id bigint PRIMARY KEY, name text, version integer NOT NULL DEFAULT '7')", ""},
		{"CREATE DOMAIN counted AS bigint DEFAULT 1 NOT NULL; CREATE TABLE checked (id bigint PRIMARY KEY, name text, version counted)", ""},
		{"CREATE TABLE checked (id bigint PRIMARY KEY, name text, version bigint NOT NULL DEFAULT greatest(1, 0))", ""},

		{"CREATE TABLE checked (key bigint PRIMARY KEY, name text, " + version + ")", "has no column id, which is the key"},
		{"CREATE TABLE checked (id bigint, name text, " + version + ")", "has no unique index on id"},
		{"CREATE TABLE checked (id bigint, name text, " + version + "); CREATE UNIQUE INDEX ON checked (id) WHERE id > 5", "has no unique index on id"},
		{"CREATE TABLE checked (id bigint, name text, " + version + "); CREATE UNIQUE INDEX ON checked (id, name)", "has no unique index on id"},
		{"CREATE TABLE checked (id bigint, name text, " + version + "); CREATE UNIQUE INDEX ON checked (abs(id))", "has no unique index on id"},
		{"CREATE TABLE checked (id bigint, name text, " + version + "); CREATE INDEX ON checked (id)", "ADD PRIMARY KEY (id)"},
		{"CREATE TABLE checked (id bigint PRIMARY KEY, name text, version bigint NOT NULL GENERATED ALWAYS AS (id + 1) STORED)", "is computed by the server"},
		{"CREATE TABLE checked (id bigint PRIMARY KEY, name text, version bigint GENERATED ALWAYS AS IDENTITY)", "is computed by the server"},
		{"CREATE TABLE base (id bigint PRIMARY KEY, name text, v bigint); CREATE VIEW checked AS SELECT id, name, v + 1 AS version FROM base", "is computed by the server"},
		{"CREATE TABLE checked (id bigint PRIMARY KEY, name text, version bigint NOT NULL DEFAULT 0)", "is 0, and a row at that version counts as not read"},
		{"CREATE TABLE checked (id bigint PRIMARY KEY, name text, version integer NOT NULL DEFAULT -1)", "is -1, and"},
		{"CREATE DOMAIN uncounted AS bigint DEFAULT 0 NOT NULL; CREATE TABLE checked (id bigint PRIMARY KEY, name text, version uncounted)", "is 0, and"},
	} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, nil)
			stand.Must(t, db.Exec(c.makes).Error)
			err := gormlock.Check(db, &checkedRow{})
			if c.wrong == "" {
				stand.Must(t, err)
			} else if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v, want: %s", c.makes, err, c.wrong)
			}
		})
	}
	for index, good := range map[string]bool{"a, b": true, "b, a": true, "a": true, "a, version": false, "a, (b + 0)": false} {
		t.Run(index, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, nil)
			stand.Must(t, db.Exec(fmt.Sprintf("CREATE TABLE checked (a bigint, b bigint, %s); CREATE UNIQUE INDEX ON checked (%s)", version, index)).Error)
			if err := gormlock.Check(db, &checkedPair{}); (err == nil) != good {
				t.Errorf("%v", err)
			}
		})
	}
}
