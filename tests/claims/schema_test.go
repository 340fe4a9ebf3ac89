package claims_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A claim from a table that is named with its schema looks at no other table of that name.
func TestClaim_inAnotherSchema(t *testing.T) {
	t.Parallel()
	elsewhere := pgtest.SchemaDSN(t)
	setup := stand.Versioned(t, []any{new(rivalTask), new(rivalPair)}, pgtest.Through(elsewhere))
	var schema string
	stand.MustDo(t, setup.Raw("SELECT current_schema()").Scan(&schema))
	for _, text := range []string{
		"INSERT INTO rival_tasks (id, account_id) SELECT i, i FROM generate_series(1, 200) AS i",
		"INSERT INTO rival_pairs (id, org, account_id) SELECT i, 1, i FROM generate_series(1, 200) AS i",
	} {
		stand.MustDo(t, setup.Exec(text))
	}
	for name, decoy := range map[string]bool{"alone": false, "beside one of the same name": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Open(t)
			if decoy {
				stand.MustDo(t, db.Exec("CREATE TABLE rival_tasks AS SELECT * FROM "+schema+".rival_tasks; CREATE TABLE rival_pairs AS SELECT * FROM "+schema+".rival_pairs"))
			}
			claimsIn[rivalTask](t, db, schema, "rival_tasks")
			claimsIn[rivalPair](t, db, schema, "rival_pairs")
		})
	}
}

func claimsIn[T any](t *testing.T, db *gorm.DB, schema, table string) {
	t.Helper()
	for _, where := range []string{"state = 'ready'", "(SELECT true) AND state = 'ready'"} {
		for _, limit := range []int{5, 40} {
			got, err := gormlock.Claim[T](db, limit, map[string]any{"state": "running"}, func(q *gorm.DB) *gorm.DB { return q.Table(schema + "." + table).Where(where) })
			if err != nil || len(got) != limit {
				t.Errorf("%s, %s, %d: %d rows, %v", table, where, limit, len(got), err)
			}
		}
	}
}
