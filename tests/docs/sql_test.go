package docs

import (
	"testing"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// The SQL of a document runs, one block after the other.
func TestDocs_sqlRuns(t *testing.T) {
	t.Parallel()
	blocks := 0
	for _, d := range documents(t) {
		t.Run(d.path, func(t *testing.T) {
			conn := pgtest.Conn(t, pgtest.Schema())
			for _, table := range []string{gormlock.OnceSchema, fence.Schema, lease.ScheduleSchema} {
				if _, err := conn.Exec(t.Context(), table); err != nil {
					t.Fatal(err)
				}
			}
			for i, sql := range d.sql() {
				blocks++
				if _, err := conn.Exec(t.Context(), sql); err != nil {
					t.Errorf("block %d: %v\n%s", i+1, err, sql)
				}
			}
		})
	}
	if blocks == 0 {
		t.Error("the documents have no SQL")
	}
}
