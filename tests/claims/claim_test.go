package claims_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

func TestClaim(t *testing.T) {
	t.Parallel()
	stand.EachMode(t, func(t *testing.T, opts ...pgtest.Option) {
		claimConformance(t, stand.Jobs(t, 10, opts...), stand.NewRowRival(t))
	})
}

func claimConformance(t *testing.T, db *gorm.DB, other stand.RowRival) {
	t.Run("returns the rows as they are now, in the asked order", func(t *testing.T) {
		before := time.Now()
		rows, err := gormlock.Claim[stand.Job](db, 4, stand.Running, stand.Ready)
		if err != nil || !slices.Equal(stand.JobIDs(rows), []int64{2, 5, 8, 1}) {
			t.Fatal(stand.JobIDs(rows), err)
		}
		for _, row := range rows {
			var stored stand.Job
			stand.MustDo(t, db.Take(&stored, row.ID))
			if row.State != "running" || row.Attempts != 1 || row.Found != 1 || row.UpdatedAt.Before(before.Add(-time.Millisecond)) {
				t.Fatalf("%+v", row)
			}
			if stored.State != row.State || stored.Attempts != row.Attempts || !stored.UpdatedAt.Equal(row.UpdatedAt) {
				t.Fatalf("claimed %+v, stored %+v", row, stored)
			}
		}
	})
	t.Run("in a transaction it is part of it and one statement", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			tx, recorder := stand.Recorded(tx)
			rows, err := gormlock.Claim[stand.Job](tx, 3, stand.Running, stand.Ready)
			if err != nil || !slices.Equal(stand.JobIDs(rows), []int64{4, 7, 10}) {
				t.Fatal(stand.JobIDs(rows), err)
			}
			if seen := recorder.Seen(); len(seen) != 1 {
				t.Fatalf("sent %q", seen)
			}
			if locked := other.Locked("jobs"); !slices.Equal(locked, []int64{4, 7, 10}) {
				t.Fatalf("locked are %v", locked)
			}
			if rows, err := gormlock.Claim[stand.Job](db, 1, stand.Running, stand.Ready); err != nil || !slices.Equal(stand.JobIDs(rows), []int64{3}) {
				t.Fatal("beside it", stand.JobIDs(rows), err)
			}
		})
	})
	t.Run("takes what is left, then nothing, without error", func(t *testing.T) {
		rows, err := gormlock.Claim[stand.Job](db, 100, stand.Running, stand.Ready)
		if err != nil || !slices.Equal(stand.JobIDs(rows), []int64{4, 7, 10, 6, 9}) {
			t.Fatal(stand.JobIDs(rows), err)
		}
		rows, err = gormlock.Claim[stand.Job](db, 100, stand.Running, stand.Ready)
		if err != nil || rows == nil || len(rows) != 0 {
			t.Fatal(rows, err)
		}
		var deleted stand.Job
		stand.MustDo(t, db.Unscoped().Take(&deleted, 11))
		if deleted.State != "ready" {
			t.Fatalf("a deleted row was claimed: %+v", deleted)
		}
	})
}

// TestClaimScopes: what a scope says is done, or an error.
func TestClaimScopes(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 4)
	scope := func(change func(q *gorm.DB) *gorm.DB) func(*gorm.DB) *gorm.DB { return change }
	for _, c := range []struct {
		name string
		want []int64
		db   func(tx *gorm.DB) *gorm.DB
		q    func(q *gorm.DB) *gorm.DB
	}{
		{"conditions on db", []int64{2, 3}, func(tx *gorm.DB) *gorm.DB { return tx.Where("id in ?", []int{2, 3}).Order("id") }, nil},
		{"a scope in a scope", []int64{3}, nil, func(q *gorm.DB) *gorm.DB {
			return q.Scopes(func(q *gorm.DB) *gorm.DB {
				return q.Scopes(func(q *gorm.DB) *gorm.DB { return q.Where("id = 3") })
			})
		}},
		{"a raw join", []int64{1, 2, 3, 4}, nil, func(q *gorm.DB) *gorm.DB {
			return q.Joins("join queues on queues.id = jobs.queue_id and not paused").Order("jobs.id")
		}},
		{"a join that leaves nothing", []int64{}, nil, func(q *gorm.DB) *gorm.DB {
			return q.Joins("join queues on queues.id = jobs.queue_id and paused")
		}},
		{"a sub-query", []int64{1}, nil, func(q *gorm.DB) *gorm.DB {
			return q.Where("id in (?)", db.Model(&stand.Step{}).Select("job_id").Where("id = 1"))
		}},
		{"Or", []int64{1, 4}, nil, func(q *gorm.DB) *gorm.DB { return q.Where("id = 1").Or("id = 4").Order("id") }},
		{"Offset", []int64{3, 4}, nil, func(q *gorm.DB) *gorm.DB { return q.Order("id").Offset(2) }},
		{"Unscoped", []int64{4, 5}, nil, func(q *gorm.DB) *gorm.DB { return q.Unscoped().Where("id > 3").Order("id") }},
		{"Table", []int64{1, 2, 3, 4}, func(tx *gorm.DB) *gorm.DB { return tx.Table("jobs") }, func(q *gorm.DB) *gorm.DB { return q.Order("id") }},
		{"a table with its schema", []int64{1, 2, 3, 4}, nil, func(q *gorm.DB) *gorm.DB {
			var schema string
			stand.MustDo(t, db.Raw("select current_schema").Scan(&schema))
			return q.Table(schema + ".jobs").Order("id")
		}},
		{"a model of its own type", []int64{1}, func(tx *gorm.DB) *gorm.DB { return tx.Model(&stand.Job{}) }, func(q *gorm.DB) *gorm.DB { return q.Where("id = 1") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			stand.InTx(t, db, func(tx *gorm.DB) {
				if c.db != nil {
					tx = c.db(tx)
				}
				var scopes []func(*gorm.DB) *gorm.DB
				if c.q != nil {
					scopes = append(scopes, scope(c.q))
				}
				rows, err := gormlock.Claim[stand.Job](tx, 4, stand.Running, scopes...)
				if err != nil || !slices.Equal(stand.JobIDs(rows), c.want) {
					t.Fatal(stand.JobIDs(rows), err)
				}
				for _, row := range rows {
					if row.State != "running" {
						t.Fatalf("%+v", row)
					}
				}
			})
		})
	}
	t.Run("Preload and Joins of associations load them", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			rows, err := gormlock.Claim[stand.Job](tx, 2, stand.Running, func(q *gorm.DB) *gorm.DB {
				return q.Joins("Queue").Preload("Steps").Where(`"Queue"."name" = ?`, "one").Order("jobs.id")
			})
			if err != nil || len(rows) != 2 || rows[0].Queue == nil || rows[0].Queue.Name != "one" || len(rows[1].Steps) != 1 {
				t.Fatalf("%+v, %v", rows, err)
			}
		})
	})
	t.Run("the db and the map given are as they were", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			given := map[string]any{"State": "running"}
			query := tx.Where("id < 3").Session(&gorm.Session{})
			for range 2 {
				rows, err := gormlock.Claim[stand.Job](query, 1, given, stand.Ready)
				if err != nil || len(rows) != 1 || len(given) != 1 {
					t.Fatal(rows, err, given)
				}
			}
			var left []stand.Job
			stand.MustDo(t, query.Find(&left))
			if len(left) != 2 {
				t.Fatalf("%+v", left)
			}
		})
	})
	t.Run("an advisory lock on the claim is taken", func(t *testing.T) {
		key := pgtest.Key(t)
		stand.InTx(t, db, func(tx *gorm.DB) {
			rows, err := gormlock.Claim[stand.Job](tx, 1, stand.Running, stand.Ready, gormlock.WithXactLock(key))
			if err != nil || len(rows) != 1 || !pgtest.Held(t, key) {
				t.Fatal(rows, err, pgtest.Held(t, key))
			}
		})
		if _, err := gormlock.Claim[stand.Job](db, 1, stand.Running, stand.Ready, gormlock.WithXactLock(key)); !errors.Is(err, gormlock.ErrNoTransaction) {
			t.Fatal(err)
		}
	})
	t.Run("the log shows the claim and not how it was built", func(t *testing.T) {
		log := &texts{}
		stand.InTx(t, db, func(tx *gorm.DB) {
			if _, err := gormlock.Claim[stand.Job](tx.Session(&gorm.Session{Logger: log}), 1, stand.Running, stand.Ready); err != nil {
				t.Fatal(err)
			}
		})
		if len(log.seen) != 1 || !strings.Contains(log.seen[0], "'running'") {
			t.Fatalf("%q", log.seen)
		}
	})
}

// texts is a logger that keeps the statements.
type texts struct {
	logger.Interface
	seen []string
}

func (l *texts) LogMode(logger.LogLevel) logger.Interface { return l }
func (l *texts) Trace(_ context.Context, _ time.Time, fc func() (string, int64), _ error) {
	sql, _ := fc()
	l.seen = append(l.seen, sql)
}

// TestV16_ClaimRefuses: what a claim cannot have is an error that says so, and nothing is claimed.
func TestV16_ClaimRefuses(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 3)
	type keyless struct{ State string }
	claim := func(assign map[string]any, scopes ...func(*gorm.DB) *gorm.DB) error {
		_, err := gormlock.Claim[stand.Job](db, 1, assign, scopes...)
		return err
	}
	with := func(change func(q *gorm.DB) *gorm.DB) error { return claim(stand.Running, change) }
	for _, c := range []struct {
		name, want string
		err        error
	}{
		{"no limit", "limit is 0", stand.ErrorOf(gormlock.Claim[stand.Job](db, 0, stand.Running))},
		{"a negative limit", "limit is -1", stand.ErrorOf(gormlock.Claim[stand.Job](db, -1, stand.Running))},
		{"no assignment", "nothing is assigned", claim(nil)},
		{"an unknown column", `no column "stat"`, claim(map[string]any{"stat": 1})},
		{"a field that is no column", `no column "Found"`, claim(map[string]any{"Found": 1})},
		{"an association", `no column "Queue"`, claim(map[string]any{"Queue": 1})},
		{"the key", "primary key", claim(map[string]any{"id": 1})},
		{"a read-only field", "read-only", claim(map[string]any{"fixed": "x"})},
		{"a column twice", "are the same column", claim(map[string]any{"state": "x", "State": "y"})},
		{"a nil scope", "nil scope", claim(stand.Running, nil)},
		{"Select", "Select and Omit", with(func(q *gorm.DB) *gorm.DB { return q.Select("id") })},
		{"Select with arguments", "Select and Omit", with(func(q *gorm.DB) *gorm.DB { return q.Select("? as id", 1) })},
		{"Omit", "Select and Omit", with(func(q *gorm.DB) *gorm.DB { return q.Omit("id") })},
		{"Limit", "give the limit to Claim itself", with(func(q *gorm.DB) *gorm.DB { return q.Limit(3) })},
		{"Distinct", "Distinct", with(func(q *gorm.DB) *gorm.DB { return q.Distinct() })},
		{"Group", "Group", with(func(q *gorm.DB) *gorm.DB { return q.Group("state") })},
		{"Having", "Group", with(func(q *gorm.DB) *gorm.DB { return q.Having("true") })},
		{"an alias", "alias", with(func(q *gorm.DB) *gorm.DB { return q.Table("jobs AS j") })},
		{"another table expression", "alias", with(func(q *gorm.DB) *gorm.DB { return q.Table("(?) as jobs", db.Model(&stand.Job{})) })},
		{"another model", "changed the model", with(func(q *gorm.DB) *gorm.DB { return q.Model(&stand.Step{}) })},
		{"a row lock", "row lock", with(gormlock.WithSkipLocked())},
		{"GORM's row lock", "row lock", with(func(q *gorm.DB) *gorm.DB { return q.Clauses(clause.Locking{Strength: "UPDATE"}) })},
		{"a row lock before", "row lock", stand.ErrorOf(gormlock.Claim[stand.Job](db.Scopes(gormlock.WithSkipLocked()), 1, stand.Running))},
		{"GORM's row lock before", "row lock", stand.ErrorOf(gormlock.Claim[stand.Job](db.Clauses(clause.Locking{Strength: "UPDATE"}), 1, stand.Running))},
		{"another clause", "RETURNING", with(func(q *gorm.DB) *gorm.DB { return q.Clauses(clause.Returning{}) })},
		{"raw SQL", "raw SQL", with(func(q *gorm.DB) *gorm.DB { return q.Raw("select 1") })},
		{"a right join", "outer side", with(func(q *gorm.DB) *gorm.DB { return q.Joins("right join queues on queues.id = jobs.queue_id") })},
		{"another query", "another query", with(func(*gorm.DB) *gorm.DB { return db.Session(&gorm.Session{DryRun: true}).Model(&stand.Job{}) })},
		{"a scope's own error", "no such scope", with(func(q *gorm.DB) *gorm.DB { _ = q.AddError(errors.New("no such scope")); return q })},
		{"a model without key", "primary key", stand.ErrorOf(gormlock.Claim[keyless](db.Table("jobs"), 1, map[string]any{"state": "x"}))},
		{"no model", "unsupported data type", stand.ErrorOf(gormlock.Claim[map[string]any](db, 1, stand.Running))},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.err == nil || stand.FromServer(c.err) || !strings.Contains(c.err.Error(), c.want) {
				t.Fatalf("%v, want an error of ours with %q", c.err, c.want)
			}
		})
	}
	var claimed int64
	stand.MustDo(t, db.Model(&stand.Job{}).Where("state <> 'ready'").Count(&claimed))
	if claimed > 0 {
		t.Fatalf("%d rows were claimed", claimed)
	}
	t.Run("rows whose hook fails are claimed and come back with its error", func(t *testing.T) {
		stand.MustDo(t, db.Exec("update jobs set priority = 99 where id = 1"))
		rows, err := gormlock.Claim[stand.Job](db, 1, stand.Running, stand.Ready)
		if !errors.Is(err, stand.ErrUnwelcome) || !slices.Equal(stand.JobIDs(rows), []int64{1}) || rows[0].State != "running" {
			t.Fatal(rows, err)
		}
	})
	t.Run("an error of the server comes through", func(t *testing.T) {
		err := with(func(q *gorm.DB) *gorm.DB { return q.Where("nonsense = 1") })
		if !stand.FromServer(err) {
			t.Fatal(err)
		}
	})
	t.Run("without the plugin", func(t *testing.T) {
		_, err := gormlock.Claim[stand.Job](pgtest.Open(t, pgtest.Schema()), 1, stand.Running)
		if !errors.Is(err, gormlock.ErrNotInstalled) {
			t.Fatal(err)
		}
	})
	t.Run("on another database", func(t *testing.T) {
		db, err := gorm.Open(sqlite.Open("file:claims?mode=memory&cache=shared"), &gorm.Config{Logger: logger.Discard})
		if err != nil {
			t.Fatal(err)
		}
		pool, _ := db.DB()
		t.Cleanup(func() { _ = pool.Close() })
		if err := db.Use(gormlock.New()); err != nil {
			t.Fatal(err)
		}
		if _, err := gormlock.Claim[stand.Job](db, 1, stand.Running); !errors.Is(err, gormlock.ErrNotPostgres) {
			t.Fatal(err)
		}
	})
	t.Run("in a dry run nothing happens", func(t *testing.T) {
		dry, recorder := stand.Recorded(db)
		rows, err := gormlock.Claim[stand.Job](dry.Session(&gorm.Session{DryRun: true}), 1, stand.Running, stand.Ready)
		if err != nil || len(rows) > 0 || len(recorder.Seen()) > 0 {
			t.Fatal(rows, err, recorder.Seen())
		}
	})
}

// TestP19_ClaimTakesParentsOfNewChildren: FOR UPDATE would skip a row whose child is being inserted.
func TestP19_ClaimTakesParentsOfNewChildren(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 1)
	stand.NewRowRival(t).Hold("insert into steps (id, job_id) values (100, 1)")
	rows, err := gormlock.Claim[stand.Job](db, 1, stand.Running, stand.Ready)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
}

// TestClaimKeys: text, uuid and composite keys, pointers, a schema in the table's name.
func TestClaimKeys(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	stand.MustDo(t, db.Exec(`create table named (name text primary key, state text);
		create table uniques (id uuid primary key default gen_random_uuid(), state text);
		create table pairs (tenant int, "the key" text, state text, primary key (tenant, "the key"));
		create schema if not exists claims; create table if not exists claims.moved (id int primary key, state text);
		insert into named select 'n' || i from generate_series(1, 9) i;
		insert into uniques (state) select null from generate_series(1, 9) i;
		insert into pairs select i % 2, 'k' || i from generate_series(1, 9) i;
		insert into claims.moved select i from generate_series(1, 9) i`))
	t.Cleanup(func() { db.Exec("drop schema claims cascade") })
	free := func(order string) func(q *gorm.DB) *gorm.DB {
		return func(q *gorm.DB) *gorm.DB { return q.Where("state is null").Order(order) }
	}
	done := map[string]any{"state": "done"}
	for range 3 {
		if rows, err := gormlock.Claim[named](db, 4, done, free("name desc")); err != nil || len(rows) > 0 && rows[0].State != "done" {
			t.Fatal(rows, err)
		}
		if rows, err := gormlock.Claim[*unique](db, 4, done, free("id")); err != nil || len(rows) > 0 && rows[0].State != "done" {
			t.Fatal(rows, err)
		}
		if rows, err := gormlock.Claim[keyPair](db, 4, done, free(`tenant, "the key" desc`)); err != nil || len(rows) > 1 && rows[0].Key < rows[1].Key {
			t.Fatal(rows, err)
		}
		if rows, err := gormlock.Claim[moved](db, 4, done, free("id")); err != nil || len(rows) == 4 && rows[3].ID-rows[0].ID != 3 {
			t.Fatal(rows, err)
		}
	}
	for _, table := range []string{"named", "uniques", "pairs", "claims.moved"} {
		var left int64
		stand.MustDo(t, db.Raw("select count(*) from "+table+" where state is distinct from 'done'").Scan(&left))
		if left > 0 {
			t.Errorf("%s: %d rows were not claimed", table, left)
		}
	}
}

type named struct {
	Name  string `gorm:"primaryKey"`
	State string
}

func (named) TableName() string { return "named" }

type unique struct {
	ID    string `gorm:"type:uuid;primaryKey"`
	State string
}

type keyPair struct {
	Tenant int    `gorm:"primaryKey"`
	Key    string `gorm:"primaryKey;column:the key"`
	State  string
}

func (keyPair) TableName() string { return "pairs" }

type moved struct {
	ID    int64
	State string
}

func (moved) TableName() string { return "claims.moved" }

// TestG26_ClaimGoesToThePrimary: the replica has no tables.
func TestG26_ClaimGoesToThePrimary(t *testing.T) {
	t.Parallel()
	replica := pgtest.Database(t)
	db := stand.Jobs(t, 3)
	stand.UseReplica(t, db, replica)
	rows, err := gormlock.Claim[stand.Job](db, 2, stand.Running, stand.Ready)
	if err != nil || len(rows) != 2 {
		t.Fatal(rows, err)
	}
}
