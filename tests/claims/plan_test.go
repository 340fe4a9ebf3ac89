package claims_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// TestClaimPlan records how PostgreSQL 15 executes a claim of a few rows and of many: the limit above the locks, in an
// InitPlan, which is evaluated once, and an index on both sides. GORMLOCK_UPDATE=1 writes what it finds.
func TestClaimPlan(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 20000)
	stand.MustDo(t, db.Exec("create index jobs_ready on jobs (priority desc, id) where state = 'ready' and deleted_at is null; analyze jobs"))
	warm, err := gormlock.Claim[stand.Job](db, 1, stand.Running, func(q *gorm.DB) *gorm.DB { return q.Where("false") }) // it asks what the table is
	if stand.Must(t, err); len(warm) > 0 {
		t.Fatal(warm)
	}
	var found string
	for _, limit := range []int{10, 100} {
		found += planOfClaim(t, db, limit)
	}
	if t.Failed() {
		return
	}
	pool, err := db.DB()
	stand.Must(t, err)
	if version := pgtest.Texts(t, pool, "SELECT current_setting('server_version_num')::int / 10000 || ''")[0]; version != "15" {
		return
	}
	golden := filepath.Join("testdata", "claim_plan_15.golden")
	if os.Getenv("GORMLOCK_UPDATE") != "" {
		stand.Must(t, os.MkdirAll("testdata", 0o755))
		stand.Must(t, os.WriteFile(golden, []byte(found), 0o644))
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if found != string(want) {
		t.Errorf("found\n%s\nwant\n%s", found, want)
	}
}

// planOfClaim is the text of a claim of up to limit rows, and how the server executes it.
func planOfClaim(t *testing.T, db *gorm.DB, limit int) string {
	t.Helper()
	dry, recorder := stand.Recorded(db)
	rows, err := gormlock.Claim[stand.Job](dry, limit, stand.Running, stand.Ready)
	if err != nil || len(rows) != limit {
		t.Fatal(len(rows), err)
	}
	pool, err := db.DB()
	stand.Must(t, err)
	text := recorder.Seen()[0]
	plan := strings.Join(pgtest.Texts(t, pool, "EXPLAIN (COSTS OFF) "+text, recorder.Args...), "\n")
	if strings.Count(plan, "LockRows") != 1 || strings.Contains(plan, "Seq Scan") {
		t.Errorf("this is not how a claim should be executed:\n%s\n%s", text, plan)
	}
	return text + "\n\n" + plan + "\n\n"
}
