package claims_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// viewTask is a row of a view, which may have more columns than the model.
type viewTask struct {
	ID        int64
	State     string
	AccountID int64
}

// Whether a row of a view has changed is told by its columns. Where these do not stay as they are, the claim says so; it does not find nothing for ever.
func TestClaim_throughAView(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		query string
		fails bool
	}{
		"a table":                       {"SELECT * FROM view_tasks", false},
		"the time of the transaction":   {"SELECT *, now() AS at FROM view_tasks", false},
		"a function that says volatile": {"SELECT *, twice(id) AS twice FROM view_tasks", false},
		"a joined row":                  {"SELECT *, (SELECT count(*) FROM view_tasks) AS among FROM view_tasks", false},
		"clock_timestamp":               {"SELECT *, clock_timestamp() AS at FROM view_tasks", true},
		"random":                        {"SELECT *, random() AS at FROM view_tasks", true},
		"a uuid":                        {"SELECT *, gen_random_uuid() AS at FROM view_tasks", true},
		"within an expression":          {"SELECT *, 'at ' || clock_timestamp() AS at FROM view_tasks", true},
		"a mapped column":               {"SELECT id, state, (random() * 1000000000)::bigint AS account_id FROM view_tasks", true},
		"a view of a view":              {"SELECT * FROM tasks_behind", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{new(viewTask)})
			stand.MustDo(t, db.Exec("CREATE FUNCTION twice(bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN 2 * $1; END $$"))
			stand.MustDo(t, db.Exec("CREATE VIEW tasks_behind AS SELECT *, random() AS at FROM view_tasks"))
			stand.MustDo(t, db.Exec("CREATE VIEW tasks_seen AS "+c.query))
			stand.MustDo(t, db.Exec("INSERT INTO view_tasks SELECT i, 'ready', i FROM generate_series(1, 100) AS i"))
			for _, limit := range []int{5, 40} {
				claim := func(where string) ([]viewTask, error) {
					return gormlock.Claim[viewTask](db, limit, map[string]any{"state": "running"}, func(q *gorm.DB) *gorm.DB {
						return q.Table("tasks_seen").Where(where).Order("id")
					})
				}
				if none, err := claim("state = 'lost'"); err != nil || len(none) > 0 {
					t.Errorf("%d of none: %v, %v", limit, none, err)
				}
				got, err := claim("state = 'ready'")
				switch {
				case !c.fails && (err != nil || len(got) != limit):
					t.Errorf("%d: %d rows, %v", limit, len(got), err)
				case c.fails && (err == nil || stand.FromServer(err) || len(got) > 0 || !strings.Contains(err.Error(), "gormlock: claim view_tasks: the view has a column")):
					t.Errorf("%d: %d rows, %v", limit, len(got), err)
				}
			}
		})
	}
}
