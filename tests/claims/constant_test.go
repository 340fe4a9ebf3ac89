package claims_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// task is a row with a column of each kind that a partial index may be about.
type task struct {
	ID    int64
	State string
	Mood  string
	Busy  bool
	Stage int
	Ended *time.Time
	Done  bool
}

func tasks(t *testing.T, opts ...pgtest.Option) *gorm.DB {
	t.Helper()
	db := stand.Open(t, opts...)
	stand.MustDo(t, db.Exec(`create type mood as enum ('calm', 'cross');
		create table tasks (id bigint primary key, state text, mood mood, busy boolean, stage int, ended timestamptz, done boolean not null default false)`))
	stand.MustDo(t, db.Exec(`insert into tasks select i, case when i % 100 = 0 then 'ready' else 'old' end, case when i % 100 = 0 then 'calm' else 'cross' end::mood,
		i % 100 <> 0, i % 100, case when i % 100 <> 0 then now() end from generate_series(1, 20000) i`))
	return db
}

// P30: a statement that is prepared uses a partial index also from its sixth run on, when the server plans it for all values of
// its parameters.
func TestP30_ArgumentsUseAPartialIndex(t *testing.T) {
	t.Parallel()
	type kind string
	for name, c := range map[string]struct {
		index string
		query string
		args  []any
	}{
		"string":     {"state = 'ready'", "state = ?", []any{"ready"}},
		"named type": {"state = 'ready'", "state = ?", []any{kind("ready")}},
		"enum":       {"mood = 'calm'", "mood = ?", []any{"calm"}},
		"bool":       {"not busy", "busy = ?", []any{false}},
		"int":        {"stage = 0", "stage = ?", []any{0}},
		"list":       {"stage in (0, 200)", "stage IN ?", []any{[]int{0, 200}}},
		"NULL":       {"ended is null", "ended IS NULL AND state <> ?", []any{"odd"}},
		"with time":  {"state = 'ready'", "state = ? AND (ended IS NULL OR ended < ?)", []any{"ready", time.Now()}},
		"map":        {"state = 'ready'", "", []any{map[string]any{"state": "ready"}}},
	} {
		where := func(q *gorm.DB) *gorm.DB {
			if c.query == "" {
				return q.Where(c.args[0]).Order("id")
			}
			return q.Where(c.query, c.args...).Order("id")
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for door, run := range map[string]func(db *gorm.DB) (int, error){
				"Claim": func(db *gorm.DB) (int, error) {
					rows, err := gormlock.Claim[task](db, 3, map[string]any{"done": true}, where)
					return len(rows), err
				},
				"WithSkipLocked": func(db *gorm.DB) (int, error) {
					var rows []task
					err := db.Transaction(func(tx *gorm.DB) error {
						return where(tx.Scopes(gormlock.WithSkipLocked())).Limit(3).Find(&rows).Error
					})
					return len(rows), err
				},
			} {
				t.Run(door, func(t *testing.T) {
					db := tasks(t, pgtest.MaxConns(1))
					stand.MustDo(t, db.Exec("create index tasks_partial on tasks (id) where "+c.index+"; analyze tasks"))
					for range 8 {
						if n, err := run(db); err != nil || n != 3 {
							t.Fatal(n, err)
						}
					}
					if plan := preparedPlan(t, db); !strings.Contains(plan, "tasks_partial") {
						t.Errorf("the eighth run does not use the index:\n%s", plan)
					}
				})
			}
		})
	}
}

// preparedPlan is how the server runs the statement with FOR that is prepared on the one connection of db.
func preparedPlan(t *testing.T, db *gorm.DB) string {
	t.Helper()
	pool, err := db.DB()
	stand.Must(t, err)
	var name string
	var parameters int
	err = pool.QueryRow(`select name, cardinality(parameter_types) from pg_prepared_statements
		where statement like '%SKIP LOCKED%' and generic_plans + custom_plans >= 8`).Scan(&name, &parameters)
	stand.Must(t, err)
	nulls := strings.TrimSuffix(strings.Repeat("NULL,", parameters), ",")
	if nulls != "" {
		nulls = "(" + nulls + ")"
	}
	stand.Must(t, ignoreResult(pool.Exec("set plan_cache_mode = force_generic_plan"))) // whatever it has counted so far
	return strings.Join(pgtest.Texts(t, pool, fmt.Sprintf("EXPLAIN (COSTS OFF) EXECUTE %s%s", name, nulls)), "\n")
}

func ignoreResult(_ sql.Result, err error) error { return err }

// What is written into a text is the value that was asked for, whatever is in it.
func TestConditions_meanTheirArguments(t *testing.T) {
	t.Parallel()
	for _, conforming := range []string{"on", "off"} {
		t.Run("standard_conforming_strings="+conforming, func(t *testing.T) {
			t.Parallel()
			db := tasks(t, pgtest.Param("standard_conforming_strings", conforming))
			stand.MustDo(t, db.Exec("delete from tasks"))
			states := []string{"", "'", "''", `\`, `\'`, `'; drop table tasks; --`, `E'a'`, "$1", "$$", "a\nb", "ä€😀", `"`, "%", "_", "?", "@a", "true", "NULL", strings.Repeat("x", 65)}
			for i, state := range states {
				stand.MustDo(t, db.Create(&task{ID: int64(i + 1), State: state, Mood: "calm"}))
			}
			for range 8 {
				for i, state := range states {
					rows, err := gormlock.Claim[task](db, 10, map[string]any{"done": true}, func(q *gorm.DB) *gorm.DB { return q.Where("state = ?", state) })
					if err != nil || len(rows) != 1 || rows[0].ID != int64(i+1) {
						t.Errorf("%q claims %v %v", state, rows, err)
					}
				}
			}
			for _, bad := range []string{"a\x00b", "a\xffb"} {
				if rows, err := gormlock.Claim[task](db, 10, map[string]any{"done": true}, func(q *gorm.DB) *gorm.DB { return q.Where("state = ?", bad) }); err == nil {
					t.Errorf("%q claims %v without an error", bad, rows)
				}
			}
		})
	}
}

// The texts that a condition has are few, and a statement cache has room for them.
func TestConditions_haveFewTexts(t *testing.T) {
	t.Parallel()
	db := tasks(t, pgtest.MaxConns(1))
	for i := range 300 {
		_, err := gormlock.Claim[task](db, 1, map[string]any{"done": true}, func(q *gorm.DB) *gorm.DB { return q.Where("state = ? AND id = ?", "ready", i) })
		stand.Must(t, err)
	}
	pool, err := db.DB()
	stand.Must(t, err)
	texts := pgtest.Texts(t, pool, "select statement from pg_prepared_statements where statement like '%SKIP LOCKED%'")
	if len(texts) > 40 || !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "'ready'") && strings.Contains(text, "id = $") }) {
		t.Errorf("%d texts:\n%s", len(texts), strings.Join(texts, "\n"))
	}
}

// An argument of another type than its column is an error, and no other question.
func TestConditions_ofAnotherType(t *testing.T) {
	t.Parallel()
	db := tasks(t)
	stand.MustDo(t, db.Exec("alter table tasks add lag interval default '10 seconds'"))
	for query, argument := range map[string]any{"lag > ?": 5, "state = ?": 5, "busy = ?": 1, "stage = ?": true} {
		rows, err := gormlock.Claim[task](db, 1, map[string]any{"done": true}, func(q *gorm.DB) *gorm.DB { return q.Where(query, argument) })
		if err == nil {
			t.Errorf("%s with %v claims %v", query, argument, rows)
		}
	}
}
