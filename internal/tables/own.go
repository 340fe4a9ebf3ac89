package tables

import (
	"slices"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/keynames"
)

// Cure says what to do if a table of gormlock lacks a column of that name.
func Cure(table, column string) string {
	own := Own("") // the argument is in no DDL that is asked for
	return own[slices.IndexFunc(own, func(t Table) bool { return t.Name == table })].Cure(column)
}

// Own are all tables of gormlock. once is the DDL of the table of Once.
func Own(once string) []Table {
	return []Table{
		{
			Name: fence.Table, DDL: fence.Schema, Lock: 7452331120164529997, Later: []string{"name text NOT NULL DEFAULT ''"},
			Loss: "tokens start again, and a superseded holder is let in",
		},
		{
			Name: "gormlock_lease", DDL: Lease, Lock: 7452331120164529998, Later: []string{"data bytea", "wanted boolean NOT NULL DEFAULT false"},
			Loss: "two programs hold one lease",
		},
		{
			Name: "gormlock_schedule", DDL: Schedule, Lock: 7452331120164529998, Later: []string{
				"done_at timestamptz", "next_at timestamptz", "owner text NOT NULL DEFAULT ''", "token bigint NOT NULL DEFAULT 0",
				"failures bigint NOT NULL DEFAULT 0", "problem text",
			},
			Loss: "ticks that were missed are forgotten, and others are run twice",
		},
		{
			Name: keynames.Table, DDL: keynames.Schema, Lock: 7452331120164529999,
			Later: []string{"scope text NOT NULL DEFAULT 'transaction'", "seen_at timestamptz NOT NULL DEFAULT now()"},
		},
		{
			Name: "gormlock_once", DDL: once, Lock: 7452331120164530001,
			Later: []string{"request bytea", "created_at timestamptz NOT NULL DEFAULT now()", "expires_at timestamptz"},
			Index: []string{"gormlock_once_created_at", "gormlock_once_expires_at"}, Loss: "requests that were done are done again",
		},
	}
}
