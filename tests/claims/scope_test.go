package claims_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A scope of a claim may ask the database itself, and it gets answers.
func TestClaim_scopeThatQueries(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 3)
	var seen int64
	rows, err := gormlock.Claim[stand.Job](db, 10, stand.Running, stand.Ready, func(q *gorm.DB) *gorm.DB {
		stand.MustDo(t, q.Session(&gorm.Session{NewDB: true}).Model(&stand.Job{}).Where("state = 'ready'").Count(&seen))
		return q.Where("id <> ?", seen)
	})
	if err != nil || seen != 3 || !slices.Equal(stand.JobIDs(rows), []int64{2, 1}) && !slices.Equal(stand.JobIDs(rows), []int64{1, 2}) {
		t.Fatal(rows, seen, err)
	}
}

// A scope that runs the claim's own query is told so.
func TestClaim_scopeThatRunsTheClaim(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 3)
	var n int64
	var err error
	_, _ = gormlock.Claim[stand.Job](db, 10, stand.Running, func(q *gorm.DB) *gorm.DB {
		err = q.Session(&gorm.Session{}).Count(&n).Error
		return q
	})
	if err == nil || stand.FromServer(err) || !strings.Contains(err.Error(), "NewDB") {
		t.Error(n, err)
	}
}

// A claim whose callback somebody replaced says so.
func TestClaim_withoutTheRowCallback(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 3)
	stand.Must(t, db.Callback().Row().Replace("gorm:row", func(*gorm.DB) {}))
	if rows, err := gormlock.Claim[stand.Job](db, 10, stand.Running, stand.Ready); err == nil || !strings.Contains(err.Error(), "gorm:row") {
		t.Error(rows, err)
	}
}

// A scope within a scope that loses the claim is an error, and nothing is claimed.
func TestClaim_scopeWithinAScopeThatReturnsAnotherQuery(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 3)
	for name, other := range map[string]*gorm.DB{"runs": db.Model(&stand.Job{}), "dry": db.Session(&gorm.Session{DryRun: true}).Model(&stand.Job{})} {
		t.Run(name, func(t *testing.T) {
			rows, err := gormlock.Claim[stand.Job](db, 10, stand.Running, func(q *gorm.DB) *gorm.DB {
				return q.Scopes(func(*gorm.DB) *gorm.DB { return other.Session(&gorm.Session{}).Where("true") })
			})
			if err == nil || !strings.Contains(err.Error(), "another query") || len(rows) > 0 {
				t.Fatal(rows, err)
			}
		})
	}
	noneClaimed(t, db)
}

// A claim is one statement to those who watch GORM's callbacks too, and on the primary from the start.
func TestClaim_isOneStatementToCallbacks(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 3)
	var statements []string
	note := func(tx *gorm.DB) { statements = append(statements, tx.Statement.SQL.String()) }
	stand.Must(t, db.Callback().Query().After("gorm:query").Register("test:query", note))
	stand.Must(t, db.Callback().Row().After("gorm:row").Register("test:row", note))
	var locking bool
	stand.Must(t, db.Callback().Row().Before("*").Register("test:first", func(tx *gorm.DB) { _, locking = tx.Statement.Clauses["FOR"] }))
	if _, err := gormlock.Claim[stand.Job](db, 1, stand.Running, stand.Ready); err != nil {
		t.Fatal(err)
	}
	if len(statements) != 1 || !strings.HasPrefix(statements[0], "UPDATE") || !locking {
		t.Errorf("%d statements: %q; a row lock is asked for: %t", len(statements), statements, locking)
	}
}

// What another plugin adds to a statement before it is sent, a claim has too, in whatever order the plugins came.
func TestClaim_keepsConditionsOfOtherPlugins(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 6)
	stand.Must(t, db.Callback().Row().Before("gorm:row").Register("test:tenant", func(tx *gorm.DB) {
		tx.Statement.AddClause(clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "jobs.id <= 2"}}})
	}))
	rows, err := gormlock.Claim[stand.Job](db, 10, stand.Running, stand.Ready)
	if ids := stand.JobIDs(rows); err != nil || len(ids) != 2 || slices.Max(ids) > 2 {
		t.Fatal(ids, err)
	}
}

// The row of another query, which a scope put in place of the claim, is closed.
func TestClaim_leavesNoConnectionBehind(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 1)
	for range 3 {
		_, _ = gormlock.Claim[stand.Job](db, 1, stand.Running, func(q *gorm.DB) *gorm.DB {
			return q.Scopes(func(*gorm.DB) *gorm.DB { return db.Model(&stand.Job{}).Where("true") })
		})
	}
	pool, err := db.DB()
	if err != nil || pool.Stats().InUse > 0 {
		t.Fatalf("%d connections are in use, %v", pool.Stats().InUse, err)
	}
}

// The claim's own table is the preserved side of a left join, whose conditions may name it.
func TestClaim_leftJoinThatNamesTheTable(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 2)
	for _, join := range []string{
		"left join queues on queues.id = jobs.queue_id", `LEFT JOIN "queues" AS q ON "q"."id" = "jobs"."queue_id"`,
		"left join jobs p on p.id = jobs.id - 1 and p.state = 'ready'",
	} {
		rows, err := gormlock.Claim[stand.Job](db, 1, map[string]any{"attempts": 1}, func(q *gorm.DB) *gorm.DB {
			return q.Joins(join).Where("jobs.state = 'ready'").Order("jobs.id")
		})
		if err != nil || len(rows) != 1 {
			t.Errorf("%s: %v, %v", join, rows, err)
		}
	}
}

// A scope within a scope that runs the claim's query claims nothing behind the caller's back.
func TestClaim_scopeWithinAScopeThatRunsTheClaim(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 3)
	var inner error
	rows, err := gormlock.Claim[stand.Job](db, 1, stand.Running, stand.Ready, func(q *gorm.DB) *gorm.DB {
		return q.Scopes(func(q *gorm.DB) *gorm.DB {
			_, inner = q.Session(&gorm.Session{}).Rows() //nolint:rowserrcheck,sqlclosecheck // there are none
			return q
		})
	})
	var claimed int64
	stand.MustDo(t, db.Model(&stand.Job{}).Where("state <> 'ready'").Count(&claimed))
	if inner == nil || err != nil || len(rows) != 1 || claimed != 1 {
		t.Errorf("%d rows are claimed, %d came back: %v, %v", claimed, len(rows), inner, err)
	}
}

// Scopes on the conditions of a join, which GORM never runs, do not end the program.
func TestJoinConditions_scopeThatPanics(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 1)
	stand.MustDo(t, db.Joins("Queue", db.Where("true").Scopes(func(q *gorm.DB) *gorm.DB {
		return q.Where(q.Statement.Schema.Table + ".id > 0")
	})).Find(&[]stand.Job{}))
}

// A scope may return a copy of its query: it is the same claim.
func TestClaim_scopesThatCopy(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 9)
	for name, scope := range map[string]func(q *gorm.DB) *gorm.DB{
		"WithContext": func(q *gorm.DB) *gorm.DB { return q.WithContext(context.Background()) },
		"Session":     func(q *gorm.DB) *gorm.DB { return q.Session(&gorm.Session{}).Where("true") },
	} {
		for where, claim := range map[string]func() ([]stand.Job, error){
			"on db": func() ([]stand.Job, error) {
				return gormlock.Claim[stand.Job](db.Scopes(scope), 1, stand.Running, stand.Ready)
			},
			"given": func() ([]stand.Job, error) {
				return gormlock.Claim[stand.Job](db, 1, stand.Running, stand.Ready, scope)
			},
			"a scope": func() ([]stand.Job, error) {
				return gormlock.Claim[stand.Job](db, 1, stand.Running, stand.Ready, func(q *gorm.DB) *gorm.DB { return q.Scopes(scope) })
			},
			"within": func() (rows []stand.Job, err error) {
				stand.MustDo(t, db.Scopes(func(q *gorm.DB) *gorm.DB {
					rows, err = gormlock.Claim[stand.Job](db.Scopes(scope), 1, stand.Running, stand.Ready)
					return q
				}).Find(&[]stand.Job{}))
				return rows, err
			},
		} {
			if rows, err := claim(); err != nil || len(rows) != 1 {
				t.Errorf("%s, %s: %d rows, %v", name, where, len(rows), err)
			}
		}
	}
}

// A scope within a scope that runs the query it was given, not a copy.
func TestClaim_scopeWithinAScopeThatRunsIt(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 3)
	rows, err := gormlock.Claim[stand.Job](db, 1, stand.Running, stand.Ready, func(q *gorm.DB) *gorm.DB {
		return q.Scopes(func(q *gorm.DB) *gorm.DB {
			_, _ = q.Rows() //nolint:rowserrcheck,sqlclosecheck // there are none
			return q
		})
	})
	var claimed int64
	stand.MustDo(t, db.Model(&stand.Job{}).Where("state <> 'ready'").Count(&claimed))
	if err == nil || len(rows) != 0 || claimed != 0 {
		t.Errorf("%d rows are claimed, %d came back: %v", claimed, len(rows), err)
	}
}

// A lock that such a scope had asked for is still an error.
func TestJoinConditions_scopeThatLocksAndPanics(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 1)
	err := db.Joins("Queue", db.Where("true").Scopes(func(q *gorm.DB) *gorm.DB {
		q = q.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Clauses(gormlock.RowLock(gormlock.ForUpdate))
		return q.Where(q.Statement.Schema.Table + ".id > 0")
	})).Find(&[]stand.Job{}).Error
	if !errors.Is(err, gormlock.ErrSubQuery) {
		t.Error(err)
	}
	err = db.Joins("Queue", db.Scopes(func(q *gorm.DB) *gorm.DB { return q.Clauses(gormlock.ExpectVersion(1)) })).Find(&[]stand.Job{}).Error
	if err == nil {
		t.Error("an expectation in a join's conditions is dropped")
	}
}

// Nor in another goroutine, which the scope waits for.
func TestClaim_scopeThatRunsTheClaimElsewhere(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 3)
	var inner error
	rows, err := gormlock.Claim[stand.Job](db.Scopes(func(q *gorm.DB) *gorm.DB {
		done := make(chan error)
		go func() {
			_, err := q.Session(&gorm.Session{}).Rows() //nolint:rowserrcheck,sqlclosecheck // there are none
			done <- err
		}()
		inner = <-done
		return q
	}), 1, stand.Running, stand.Ready)
	var claimed int64
	stand.MustDo(t, db.Model(&stand.Job{}).Where("state <> 'ready'").Count(&claimed))
	if inner == nil || int(claimed) != len(rows) {
		t.Errorf("%d rows are claimed, %d came back: %v, %v", claimed, len(rows), inner, err)
	}
}
