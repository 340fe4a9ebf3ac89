package claims_test

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// plans are settings under which the server joins in each way it knows.
var plans = map[string]string{
	"nested loop": "set local enable_hashjoin = off; set local enable_mergejoin = off",
	"hash join":   "set local enable_nestloop = off; set local enable_mergejoin = off",
	"merge join":  "set local enable_nestloop = off; set local enable_hashjoin = off",
	"no index":    "set local enable_indexscan = off; set local enable_bitmapscan = off",
	"rescanned":   "set local enable_indexscan = off; set local enable_bitmapscan = off; set local enable_material = off; set local enable_hashjoin = off; set local enable_mergejoin = off",
	"no sort":     "set local enable_sort = off; set local enable_material = off",
	"generic":     "set local plan_cache_mode = force_generic_plan",
	"custom":      "set local plan_cache_mode = force_custom_plan",
}

// TestP5_ClaimLimit: whatever plan the server takes, a claim changes as many rows as it was allowed, in their order. The
// control is the statement that is often used instead, and exceeds its limit under a nested loop.
func TestP5_ClaimLimit(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 300)
	stand.MustDo(t, db.Exec("update jobs set priority = hashtext(id::text); analyze jobs")) // so that the order is not that of the keys
	stand.MustDo(t, db.Exec(`create table pairs (tenant int, "the key" text, state text, primary key (tenant, "the key"));
		insert into pairs select i % 7, md5(i::text), 'ready' from generate_series(1, 300) i; analyze pairs`))
	for name, settings := range plans {
		for limit, few := range map[int]string{5: "few rows, ", 40: "many rows, "} {
			t.Run("one key, "+few+name, func(t *testing.T) {
				keepsItsLimit(t, db, "jobs", settings, limit, stand.Ready, func(a, b stand.Job) bool {
					return a.Priority > b.Priority || a.Priority == b.Priority && a.ID < b.ID
				})
			})
		}
		t.Run("two keys, "+name, func(t *testing.T) {
			keepsItsLimit(t, db, "pairs", settings, 5, func(q *gorm.DB) *gorm.DB {
				return q.Where("state = 'ready'").Order(`tenant DESC, "the key" COLLATE "C"`)
			}, func(a, b keyPair) bool { return a.Tenant > b.Tenant || a.Tenant == b.Tenant && a.Key < b.Key })
		})
	}
	t.Run("the control exceeds its limit", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.MustDo(t, tx.Exec(plans["nested loop"]+"; set local enable_material = off; set local enable_indexscan = off; set local enable_bitmapscan = off; set local enable_hashagg = off; set local enable_sort = off"))
			control := stand.MustDo(t, tx.Exec(`update jobs set state = 'running' where id in (select id from jobs where state = 'ready' limit 5 for update skip locked)`))
			if control.RowsAffected <= 5 {
				t.Fatal("it kept its limit: this test forces no plan that would show anything")
			}
		})
	})
}

// keepsItsLimit claims seven times under these settings: the server may change to a generic plan after five.
func keepsItsLimit[T any](t *testing.T, db *gorm.DB, table, settings string, limit int, which func(*gorm.DB) *gorm.DB, before func(a, b T) bool) {
	t.Helper()
	stand.InTx(t, db, func(tx *gorm.DB) {
		stand.MustDo(t, tx.Exec("discard plans; "+settings)) // the server keeps a plan made under other settings
		for range 7 {
			rows, err := gormlock.Claim[T](tx, limit, map[string]any{"state": "running"}, which)
			if err != nil || len(rows) != limit {
				t.Fatal(len(rows), err)
			}
			for i := 1; i < len(rows); i++ {
				if !before(rows[i-1], rows[i]) {
					t.Fatalf("the order is %v", rows)
				}
			}
		}
		var changed int64
		stand.MustDo(t, tx.Table(table).Where("state = 'running'").Count(&changed))
		if changed != int64(7*limit) {
			t.Fatalf("%d rows changed", changed)
		}
	})
}

// TestClaim_besideWriters: a row that another writer changes between the claim's look and its lock is claimed as it is
// then, or left; none is changed without coming back.
func TestClaim_besideWriters(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{5, 40} {
		t.Run(strconv.Itoa(limit), func(t *testing.T) {
			t.Parallel()
			db := stand.Jobs(t, 400)
			done := make(chan struct{})
			var writers sync.WaitGroup
			for range 3 {
				writers.Go(func() {
					for {
						select {
						case <-done:
							return
						default:
							err := db.Exec("update jobs set attempts = attempts + 1 where id = (select id from jobs where state = 'ready' order by priority desc, id limit 1 offset ?)", rand.IntN(limit)).Error
							if err != nil {
								t.Error(err)
								return
							}
						}
					}
				})
			}
			seen := map[int64]bool{}
			for len(seen) < 300 {
				rows, err := gormlock.Claim[stand.Job](db, limit, stand.Running, stand.Ready)
				if err != nil || len(rows) > limit {
					t.Fatal(len(rows), err)
				}
				for i, row := range rows {
					if seen[row.ID] || row.State != "running" || i > 0 && row.Priority > rows[i-1].Priority {
						t.Fatal("twice, not changed or out of order", row)
					}
					seen[row.ID] = true
				}
			}
			close(done)
			writers.Wait()
			var changed int64
			stand.MustDo(t, db.Model(&stand.Job{}).Where("state = 'running'").Count(&changed))
			if changed != int64(len(seen)) {
				t.Fatalf("%d rows came back, %d are changed", len(seen), changed)
			}
		})
	}
}
