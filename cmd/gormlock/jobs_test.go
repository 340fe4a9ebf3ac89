package main_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

// Parcel is a job of these tests with a soft delete.
type Parcel struct {
	work.Job
	DeletedAt gorm.DeletedAt
}

// Crate is a job with a column that GORM would name differently.
type Crate struct {
	work.Job
	DeletedAt gorm.DeletedAt `gorm:"column:it's gone"`
}

// Jobs that no worker runs are not counted, and requeue does not claim to make them ready.
func TestJobs_leavesOutWhatIsSoftDeleted(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	db := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()))
	for table, c := range map[string]struct {
		model  any
		column string
	}{"parcels": {&Parcel{}, "deleted_at"}, "crates": {&Crate{}, `"it's gone"`}} {
		for range 2 {
			if err := work.Migrate(db, c.model); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Exec("INSERT INTO " + table + " (id, state, " + c.column + ") VALUES (1, 'dead', now()), (2, 'ready', now())").Error; err != nil {
			t.Fatal(err)
		}
		on(t, dsn, "jobs", table).is(t, 0, "no job is ready")
		on(t, dsn, "jobs", table, "requeue", "1").is(t, 1, "0 jobs of "+table+" ready again", "1 of 1 job are not dead, or do not exist, or are soft-deleted")
		if err := db.Exec("UPDATE " + table + " SET " + c.column + " = NULL").Error; err != nil {
			t.Fatal(err)
		}
		on(t, dsn, "jobs", table, "requeue", "1").is(t, 0, "1 job of "+table+" ready again")
	}
}

// Times of any distance are shown, and missing times are left out.
func TestJobs_ofOtherAges(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	db := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()))
	if err := work.Migrate(db, &Letter{}); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"'-infinity'", "'infinity'", "'1700-01-01'", "'4000-01-01 BC'", "'20000-01-01'", "NULL"} {
		err := db.Exec("INSERT INTO letters (state, run_at, updated_at) VALUES ('dead', now(), " + at + "), ('ready', COALESCE(" + at + ", now()), NULL)").Error
		if err != nil {
			t.Fatal(err)
		}
		r := on(t, dsn, "jobs", "letters")
		r.is(t, 0, "default")
		if at == "NULL" && strings.Contains(r.out, "h0m") {
			t.Errorf("an age of a job whose row says none: %s", r.out)
		}
		if strings.Contains(r.out, "-2") {
			t.Errorf("%s: a negative age: %s", at, r.out)
		}
		on(t, dsn, "jobs", "letters", "--json").is(t, 0, `"ready": 1`, `"at": `)
		if err := db.Exec("DELETE FROM letters").Error; err != nil {
			t.Fatal(err)
		}
	}
}

// Letter is a job of these tests.
type Letter struct{ work.Job }

func TestJobs(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	db := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()))
	if err := work.Migrate(db, &Letter{}); err != nil {
		t.Fatal(err)
	}
	on(t, dsn, "jobs", "letters").is(t, 0, "letters: no job is ready")
	for _, text := range []string{
		"INSERT INTO letters (queue, run_at) VALUES ('bulk', now() - interval '90 s'), ('bulk', now())",
		"INSERT INTO letters (id, state, attempts, last_error, updated_at) VALUES (101, 'dead', 3, E'no such street\nat line 7', now() - interval '1 h'), (102, 'dead', 20, 'nobody', now()), (777777, 'done', 1, '', now())",
	} {
		if err := db.Exec(text).Error; err != nil {
			t.Fatal(err)
		}
	}
	r := on(t, dsn, "jobs", "letters")
	r.is(t, 0, "QUEUE", "bulk", "1m3", "DEAD", "101", "no such street", "1h0m", "nobody")
	if strings.Contains(r.out, "at line 7") || strings.Contains(r.out, "777777") {
		t.Errorf("%s", r.out)
	}
	if err := db.Exec(`INSERT INTO letters (id, queue, state, last_error, updated_at) VALUES (104, E'q\x1b[31m\nx', 'dead', E'e\x1b[2J\u009b2J', now())`).Error; err != nil {
		t.Fatal(err)
	}
	r = on(t, dsn, "jobs", "letters")
	r.is(t, 0, `q\x1b[31m x`, `e\x1b[2J\u009b2J`)
	if strings.ContainsAny(r.out+on(t, dsn, "jobs", "letters", "--json").out, "\x1b\u009b") {
		t.Errorf("the text of a job moves the cursor: %q", r.out)
	}
	if err := db.Exec("DELETE FROM letters WHERE id = 104").Error; err != nil {
		t.Fatal(err)
	}
	on(t, dsn, "jobs", "letters", "--limit", "1").is(t, 0, "1 more are dead")
	var found struct {
		Queues []struct{ Ready, Dead int }
		Dead   []struct{ ID, Error string }
	}
	if err := json.Unmarshal([]byte(on(t, dsn, "jobs", "letters", "--json").out), &found); err != nil || len(found.Queues) != 2 || found.Queues[0].Ready != 2 || len(found.Dead) != 2 || found.Dead[0].ID != "102" {
		t.Errorf("%+v, %v", found, err)
	}
	listener := pgtest.Conn(t, pgtest.Through(dsn))
	if _, err := listener.Exec(t.Context(), "LISTEN gormlock_work", pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	on(t, dsn, "jobs", "letters", "requeue", "101").is(t, 0, "1 job of letters ready again")
	if n, err := listener.WaitForNotification(t.Context()); err != nil || !strings.HasSuffix(n.Payload, " ") {
		t.Errorf("%+v, %v", n, err)
	}
	on(t, dsn, "jobs", "letters", "requeue", "101", "102").is(t, 1, "1 job of letters ready again", "1 of 2 jobs are not dead")
	if err := db.Exec("UPDATE letters SET state = 'dead' WHERE id = 102").Error; err != nil {
		t.Fatal(err)
	}
	on(t, dsn, "jobs", "letters", "requeue", "102", "0102", "+102").is(t, 0, "1 job of letters ready again") // one id in three spellings
	for want, args := range map[string]string{
		"requeue names no ID": "letters requeue", `"x" is not the ID`: "letters requeue x", "there is no table strangers": "strangers",
		"is not a table of jobs, it has no": "pg_class", `unexpected argument "requeu" after TABLE, did you mean requeue?`: "letters requeu 1", "--limit -1 is negative": "letters --limit -1",
	} {
		on(t, dsn, append([]string{"jobs"}, strings.Fields(args)...)...).is(t, 2, want)
	}
}
