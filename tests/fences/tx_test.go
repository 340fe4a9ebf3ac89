package fences_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A token whose issue was rolled back is not one, although its key has had others.
func TestFence_thatWasRolledBack(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&reportNote{}, &report{}})
	earlier := stand.Issue(t, db, "report", 1)
	tx := db.Begin()
	token, err := gormlock.FenceFor(tx, gormlock.Key("report", 1))
	stand.Must(t, err)
	stand.Must(t, gormlock.FenceTx(tx, token)) // where it was issued it is good
	stand.Must(t, stand.With(tx, token).Create(&report{Body: "in it"}).Error)
	stand.Must(t, tx.Rollback().Error)
	stand.Equal(t, "number", token.Number, earlier.Number+1)
	for name, write := range map[string]func(tx *gorm.DB) error{
		"FenceTx": func(tx *gorm.DB) error { return gormlock.FenceTx(tx, token) },
		"Create":  func(tx *gorm.DB) error { return stand.With(tx, token).Create(&report{}).Error },
		"several": func(tx *gorm.DB) error { return stand.With(tx, token).Create(&[]report{{}, {}}).Error },
	} {
		refused := mustBeFenced(t, db.Transaction(write))
		stand.Equal(t, name, refused.Latest.Number, 0)
		if !strings.Contains(refused.Error(), "was never issued") {
			t.Errorf("%s: %v", name, refused)
		}
	}
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error { return gormlock.FenceTx(tx, earlier) }))
	stand.Must(t, stand.With(db, earlier).Create(&report{}).Error)
}

// TestFenceTx: what a whole transaction writes is the latest holder's, and a later token waits for it.
func TestFenceTx(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&reportNote{}})
	token := stand.Issue(t, db, "report", 1)
	pool, err := db.DB()
	stand.Must(t, err)
	conn, err := pool.Conn(t.Context())
	stand.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	var pid int
	stand.Must(t, conn.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid))
	later := make(chan fence.Token, 1)
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		stand.Must(t, gormlock.FenceTx(tx, token))
		go func() {
			token, err := fence.Issue(context.WithoutCancel(t.Context()), conn, lockkey.Of("report", 1))
			if err != nil {
				t.Error(err)
			}
			later <- token
		}()
		pgtest.WaitBackendBlocked(t, pid)
		return tx.Create(&reportNote{}).Error
	}))
	latest := <-later
	stand.Equal(t, "later", latest.Number, token.Number+1)

	// A refusal that is swallowed is the error of the commit, and nothing is stored.
	err = db.Transaction(func(tx *gorm.DB) error {
		refused := mustBeFenced(t, gormlock.FenceTx(tx, token))
		stand.Equal(t, "latest", refused.Latest, latest)
		stand.Equal(t, "message", refused.Error(), "gormlock: token "+token.String()+" is superseded, "+latest.String()+" has been issued")
		return tx.Create(&reportNote{}).Error
	})
	mustFenced(t, err)
	var notes int64
	stand.Must(t, db.Model(&reportNote{}).Count(&notes).Error)
	stand.Equal(t, "notes", notes, 1)
	// One of a savepoint is lifted with it.
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		mustFenced(t, tx.Transaction(func(tx *gorm.DB) error { return gormlock.FenceTx(tx, token) }))
		return tx.Create(&reportNote{}).Error
	}))
}

func TestFenceTx_refusals(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, nil)
	latest := stand.Issue(t, db, "report", 1)
	never, err := fence.For(lockkey.Of("report", 2), 7)
	stand.Must(t, err)
	for _, wrong := range []struct {
		db    *gorm.DB
		token fence.Token
		want  error
	}{
		{db, latest, gormlock.ErrNoTransaction},
		{db.Begin(), fence.Token{}, gormlock.ErrFenceMissing},
		{db.Begin(), never, gormlock.ErrFenced},
		{stand.OnSQLite(t, nil).Begin(), latest, gormlock.ErrNotPostgres},
		{pgtest.Open(t).Begin(), latest, gormlock.ErrNotInstalled},
		{db.Begin(), latest, nil},
	} {
		if err := gormlock.FenceTx(wrong.db, wrong.token); !errors.Is(err, wrong.want) {
			t.Errorf("got %v, want %v", err, wrong.want)
		}
		if wrong.want != gormlock.ErrNoTransaction { //nolint:errorlint // the value in the table
			wrong.db.Rollback()
		}
	}
}

// L11: a transaction-level lock has tokens too, issued inside the transaction.
func TestFenceFor(t *testing.T) {
	t.Parallel()
	stand.EachMode(t, func(t *testing.T, opts ...pgtest.Option) {
		fenceFor(t, stand.Fenced(t, []any{&report{}, &reportNote{}}, opts...))
	})
}

func fenceFor(t *testing.T, db *gorm.DB) {
	key := lockkey.Of("report", pgtest.Key(t).String())
	var r report
	var first fence.Token
	stand.Must(t, db.Transaction(func(tx *gorm.DB) (err error) {
		if first, err = gormlock.FenceFor(tx, key); err != nil {
			return err
		}
		if !pgtest.Held(t, key) {
			t.Error("the lock is not held")
		}
		tx = tx.WithContext(fence.NewContext(tx.Statement.Context, first))
		stand.Must(t, tx.Create(&r).Error)
		return tx.Model(&r).Update("body", "first").Error
	}))
	pgtest.AssertFree(t, key)
	stand.Equal(t, "stored", stand.Row[report](t, db, r.ID).Fence, first.Number)
	stand.Must(t, db.Clauses(gormlock.Fence(first)).Model(&r).Update("body", "still").Error)

	undone := errors.New("undone")
	var never fence.Token
	err := db.Transaction(func(tx *gorm.DB) (err error) {
		if never, err = gormlock.FenceFor(tx, key, gormlock.Try()); err != nil {
			return err
		}
		stand.Must(t, tx.Clauses(gormlock.Fence(never)).Model(&r).Update("body", "never").Error)
		stand.Equal(t, "in the transaction", r.Fence, never.Number)
		return undone
	})
	if !errors.Is(err, undone) {
		t.Fatal(err)
	}
	stand.Equal(t, "V1: after the rollback", r.Fence, first.Number)
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		second, err := gormlock.FenceFor(tx, key, gormlock.Timeout(time.Second))
		stand.Equal(t, "number", second.Number, never.Number)
		return err
	}))
	mustFenced(t, db.Clauses(gormlock.Fence(first)).Model(&r).Update("body", "late").Error)

	if _, err := gormlock.FenceFor(db, key); !errors.Is(err, gormlock.ErrNoTransaction) {
		t.Error(err)
	}
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		stand.Must(t, gormlock.AcquireXactLock(tx, []lockkey.Key{key}))
		other := db.Begin()
		defer other.Rollback()
		if _, err := gormlock.FenceFor(other, key, gormlock.Try()); !errors.Is(err, gormlock.ErrNotAcquired) {
			t.Error(err)
		}
		return nil
	}))
}

// A database without the table of tokens says what to do.
func TestFenceWithoutItsTable(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&report{}, &reportNote{}})
	token, err := fence.For(lockkey.Of("report", 1), 7)
	stand.Must(t, err)
	r := report{}
	stand.Must(t, unguarded(db).Create(&r).Error)
	for name, err := range map[string]error{
		"create":   stand.With(db, token).Create(&report{}).Error,
		"update":   stand.With(db, token).Model(&r).Update("body", "x").Error,
		"bulk":     stand.With(db, token).Model(&report{}).Where("1=1").Update("body", "x").Error,
		"delete":   stand.With(db, token).Delete(&r).Error,
		"FenceTx":  db.Transaction(func(tx *gorm.DB) error { return gormlock.FenceTx(tx, token) }),
		"FenceFor": db.Transaction(func(tx *gorm.DB) error { _, err := gormlock.FenceFor(tx, pgtest.Key(t)); return err }),
	} {
		if err == nil || !strings.Contains(err.Error(), "fence.Migrate") || errors.Is(err, gormlock.ErrFenced) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// L11: creates that hold back later tokens, and those who want one, do not wait for each other in a circle.
func TestFenceHasNoDeadlock(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&report{}, &reportNote{}})
	key := lockkey.Of("report", pgtest.Key(t).String())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				token := stand.Issue(t, db, "report", pgtest.Key(t).String())
				err := db.Transaction(func(tx *gorm.DB) error {
					tx = tx.WithContext(fence.NewContext(tx.Statement.Context, token))
					r := report{}
					if err := tx.Create(&r).Error; err != nil {
						return err
					}
					return errors.Join(tx.Model(&r).Update("body", "x").Error, tx.Create(&[]report{{}, {}}).Error)
				})
				if err != nil && !errors.Is(err, gormlock.ErrFenced) {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 25 {
				err := db.Transaction(func(tx *gorm.DB) error {
					token, err := gormlock.FenceFor(tx, key)
					if err != nil {
						return err
					}
					return tx.Clauses(gormlock.Fence(token)).Create(&report{}).Error
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// At REPEATABLE READ a snapshot answers for all statements of its transaction. What locks the token, FenceTx and every
// create, is told of a later one all the same.
func TestFenceAtRepeatableRead(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&report{}, &reportNote{}})
	token := stand.Issue(t, db, "report", 1)
	r := report{}
	stand.Must(t, stand.With(db, token).Create(&r).Error)
	stand.Must(t, gormlock.Transaction(stand.With(db, token), func(tx *gorm.DB) error {
		stand.Must(t, tx.First(&report{}, r.ID).Error) // the snapshot
		stand.Issue(t, db, "report", 1)
		stand.Must(t, tx.Model(&r).Update("body", "by the snapshot").Error) // it knows no later token
		stand.Must(t, tx.SavePoint("before").Error)
		if err := gormlock.FenceTx(tx, token); !gormlock.IsRetryable(err) {
			t.Errorf("FenceTx: %v", err)
		}
		stand.Must(t, tx.RollbackTo("before").Error)
		if err := tx.Create(&report{}).Error; !gormlock.IsRetryable(err) {
			t.Errorf("create: %v", err)
		}
		return tx.RollbackTo("before").Error
	}, gormlock.Isolation(sql.LevelRepeatableRead)))
	mustFenced(t, gormlock.Transaction(stand.With(db, token), func(tx *gorm.DB) error {
		return tx.Model(&r).Update("body", "late").Error
	}, gormlock.Isolation(sql.LevelRepeatableRead)))
}

// What a role needs to write by tokens that others issue.
func TestFencePrivileges(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&report{}, &reportNote{}}, pgtest.MaxConns(1))
	token := stand.Issue(t, db, "report", 1)
	stand.Must(t, unguarded(db).Create(&report{}).Error)
	role := "writer_" + strings.ToLower(rand.Text()[:10])
	for _, statement := range []string{
		"CREATE ROLE " + role, "GRANT USAGE ON SCHEMA " + schemaOf(t, db) + " TO " + role,
		"GRANT ALL ON reports, report_notes, reports_id_seq TO " + role, "GRANT SELECT ON gormlock_fence TO " + role,
	} {
		stand.Must(t, db.Exec(statement).Error)
	}
	as := func(write func(tx *gorm.DB) error) error {
		stand.Must(t, db.Exec("SET ROLE "+role).Error)
		err := write(stand.With(db, token))
		stand.Must(t, db.Exec("RESET ROLE").Error)
		return err
	}
	create := func(tx *gorm.DB) error { return tx.Create(&report{}).Error }
	stand.Must(t, as(func(tx *gorm.DB) error { return tx.Model(&report{ID: 1}).Update("body", "x").Error }))
	stand.Must(t, as(func(tx *gorm.DB) error { return tx.Where("id = 1").Delete(&report{}).Error }))
	if err := as(create); err == nil || errors.Is(err, gormlock.ErrFenced) || !strings.Contains(err.Error(), fence.Table) {
		t.Errorf("a create without the right to lock the token: %v", err)
	}
	stand.Must(t, db.Exec("GRANT UPDATE ON gormlock_fence TO "+role).Error)
	stand.Must(t, as(create))
	stand.Must(t, db.Exec("DROP OWNED BY "+role).Error)
	stand.Must(t, db.Exec("DROP ROLE "+role).Error)
}

func schemaOf(t *testing.T, db *gorm.DB) (name string) {
	t.Helper()
	stand.Must(t, db.Raw("SELECT current_schema()").Scan(&name).Error)
	return name
}

// In a transaction that gormlock did not see begin the server refuses what follows a refusal, and its commit.
func TestFenceTxInAnUnseenTransaction(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&reportNote{}})
	old := stand.Issue(t, db, "report", 1)
	stand.Issue(t, db, "report", 1)
	stand.Must(t, db.Connection(func(conn *gorm.DB) error {
		if err := conn.Transaction(func(tx *gorm.DB) error {
			mustFenced(t, gormlock.FenceTx(tx, old))
			tx.Create(&reportNote{})
			return nil
		}); err == nil {
			t.Error("it was committed")
		}
		return nil
	}))
	var n int64
	stand.Must(t, db.Model(&reportNote{}).Count(&n).Error)
	stand.Equal(t, "notes", n, 0)
}
