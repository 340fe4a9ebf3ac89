// Package tables holds the DDL of tables that two packages create: their owner, and gormlock.MigrateAll.
package tables

import (
	"fmt"
	"strings"

	"github.com/gormlock/gormlock/internal/newtable"
)

// Lease is the DDL of the table of leases: see lease.Schema.
const Lease = `CREATE TABLE IF NOT EXISTS gormlock_lease (
	space       smallint    NOT NULL, -- 1: the key is one bigint, 2: two int4 (objsubid of pg_locks)
	id          bigint      NOT NULL,
	name        text        NOT NULL, -- the key for people
	holder      text        NOT NULL, -- one acquisition; empty when it was released
	owner       text        NOT NULL, -- who took it last, for people
	data        bytea,
	acquired_at timestamptz NOT NULL,
	expires_at  timestamptz NOT NULL, -- free from then on
	wanted      boolean     NOT NULL, -- somebody waits to be notified of the release
	PRIMARY KEY (space, id)
) WITH (fillfactor = 50)`

// Schedule is the DDL of the table of schedules: see lease.ScheduleSchema.
const Schedule = `CREATE TABLE IF NOT EXISTS gormlock_schedule (
	space      smallint    NOT NULL, -- 1: the key is one bigint, 2: two int4 (objsubid of pg_locks)
	id         bigint      NOT NULL,
	name       text        NOT NULL, -- the key for people
	settled_at timestamptz NOT NULL, -- all ticks up to this one are done, given up or skipped
	tick_at    timestamptz,          -- the tick that was begun and is not settled
	attempts   integer     NOT NULL, -- runs of it that were begun
	retry_at   timestamptz,          -- when it is run again
	done_at    timestamptz,          -- the last tick that was done
	next_at    timestamptz,          -- the tick after that which was begun last, for people
	owner      text        NOT NULL, -- who began the last run, for people
	token      bigint      NOT NULL, -- of that run
	failures   bigint      NOT NULL, -- runs that failed since a tick was done
	problem    text,                 -- of the last of them
	PRIMARY KEY (space, id)
) WITH (fillfactor = 50)`

// Table is one table of gormlock's own.
type Table struct {
	Name  string
	DDL   string
	Lock  int64    // the advisory lock under which it is made
	Later []string // definitions of columns that a table of an earlier version may lack
	Index []string // names of indexes other than the key that the DDL makes
	Loss  string   // what happens if its rows are lost, "" if that does not matter
}

// Cure says what to do if the table lacks a column of that name. A new table has none of the old rows.
func (t Table) Cure(column string) string {
	switch {
	case t.Definition(column) != "":
		return "gormlock.MigrateAll adds it"
	case t.Loss == "":
		return "rename the table, and gormlock.MigrateAll makes it anew"
	}
	return "give the renamed column its name back, or add it with the values it had; do not make the table anew, or " + t.Loss
}

// Migration creates the table if the search_path finds none, and adds the columns that an existing table lacks. Programs that start together take
// turns, because IF NOT EXISTS alone fails in some of them. If nothing is missing, the role needs no right to create anything.
func (t Table) Migration() string {
	var lacks []string
	var adds strings.Builder
	for _, definition := range t.Later {
		column, _, _ := strings.Cut(definition, " ")
		lacks = append(lacks, "'"+column+"'")
		fmt.Fprintf(&adds, "\t\tALTER TABLE %s ADD COLUMN IF NOT EXISTS %s;\n", t.Name, definition)
	}
	missing := "to_regclass('" + t.Name + "') IS NULL"
	if lacks != nil {
		missing += fmt.Sprintf(" OR EXISTS (SELECT FROM unnest(ARRAY[%s]) AS c WHERE NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = to_regclass('%s') AND a.attname = c AND NOT a.attisdropped))",
			strings.Join(lacks, ", "), t.Name)
	}
	for _, index := range t.Index {
		missing += " OR " + newtable.LacksIndex(t.Name, index)
	}
	create, rest, _ := strings.Cut(t.DDL, ";\n") // comments have semicolons too
	if rest != "" {
		rest += ";"
	}
	return fmt.Sprintf("DO $gormlock$ BEGIN\n\tIF %s THEN\n\t\tPERFORM pg_advisory_xact_lock(%d);\n\t\t%s;\n%s\t%s\n%s\tEND IF;\nEND $gormlock$",
		missing, t.Lock, create, &adds, rest, newtable.HasIndexes(t.Name, t.DDL))
}
