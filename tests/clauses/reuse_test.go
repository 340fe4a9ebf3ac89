package clauses_test

import (
	"database/sql/driver"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// TestMarks_afterTheStatement: a db that has run a statement is given to another one as a group of its conditions. What
// it carries is not done there, and not dropped.
func TestMarks_afterTheStatement(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	stand.MustDo(t, db.Create(&stand.Account{ID: 1, Balance: 1}))
	for name, run := range map[string]func(q *gorm.DB) *gorm.DB{
		"create": func(q *gorm.DB) *gorm.DB { return q.Create(&stand.Account{}) },
		"update": func(q *gorm.DB) *gorm.DB { return q.Model(&stand.Account{}).Update("balance", 5) },
		"delete": func(q *gorm.DB) *gorm.DB { return q.Delete(&stand.Account{}) },
		"find":   func(q *gorm.DB) *gorm.DB { return q.Find(&[]stand.Account{}) },
		"first":  func(q *gorm.DB) *gorm.DB { return q.First(&stand.Account{}) },
		"count":  func(q *gorm.DB) *gorm.DB { return q.Model(&stand.Account{}).Count(new(int64)) },
		"row": func(q *gorm.DB) *gorm.DB {
			q = q.Model(&stand.Account{}).Select("balance")
			_ = q.Row().Scan(new(int64))
			return q
		},
		"exec": func(q *gorm.DB) *gorm.DB { return q.Exec("select 1") },
		"find, with a scope that sets the context": func(q *gorm.DB) *gorm.DB {
			return q.Scopes(func(d *gorm.DB) *gorm.DB { return d.WithContext(t.Context()) }).Find(&[]stand.Account{})
		},
	} {
		for clauseName, c := range map[string]clause.Expression{
			"XactLock": gormlock.XactLock(gormlock.Key("again")), "IgnoreVersion": gormlock.IgnoreVersion(),
			"ExpectVersion": gormlock.ExpectVersion(99), "IfMatch": stand.IfMatch("*"), "RowLock": gormlock.RowLock(gormlock.ForUpdate),
		} {
			stand.InTx(t, db, func(tx *gorm.DB) {
				stand.MustDo(t, tx.SavePoint("before"))
				q := tx.Clauses(c).Where("id = 2") // a chain: what is added to it stays
				for range 2 {
					_ = run(q).Error
				}
				stand.MustDo(t, tx.RollbackTo("before"))
				again := tx.Model(&stand.Account{}).Where("id = 1").Where(q).UpdateColumn("balance", 7)
				if again.Error == nil || !strings.Contains(again.Error.Error(), "put it on the statement") {
					t.Errorf("%s, %s: %v: %s", name, clauseName, again.Error, again.Statement.SQL.String())
				}
			})
		}
	}
}

// panicking is a value that panics when it is sent.
type panicking struct{}

func (panicking) Value() (driver.Value, error) { panic("a value that cannot be sent") }

// TestMarks_afterAFailure: nor does a db forget what it carries whose statement was refused, or panicked.
func TestMarks_afterAFailure(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	stand.MustDo(t, db.Create(&stand.Account{ID: 1, Balance: 1}))
	lock, expect := gormlock.XactLock(gormlock.Key("failed")), gormlock.ExpectVersion(99)
	for name, c := range map[string]struct {
		q     func(tx *gorm.DB) *gorm.DB
		value any
		again clause.Expression // what the statement around it asks for too
	}{
		"refused with a lock":         {q: func(tx *gorm.DB) *gorm.DB { return tx.Clauses(lock).Where(tx.Clauses(expect).Where("id = 1")) }, value: 5, again: expect},
		"refused with a version":      {q: func(tx *gorm.DB) *gorm.DB { return tx.Clauses(expect).Where(tx.Clauses(lock).Where("id = 1")) }, value: 5, again: lock},
		"a panic, without any clause": {q: func(tx *gorm.DB) *gorm.DB { return tx.Clauses(lock).Where("id = 1") }, value: panicking{}},
	} {
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.MustDo(t, tx.SavePoint("before"))
			q := c.q(tx)
			func() {
				defer func() { _ = recover() }()
				_ = q.Model(&stand.Account{}).Update("balance", c.value).Error
			}()
			stand.MustDo(t, tx.RollbackTo("before"))
			around := tx.Session(&gorm.Session{})
			if c.again != nil {
				around = tx.Clauses(c.again)
			}
			if err := around.Model(&stand.Account{}).Where(q).Update("balance", 6).Error; err == nil {
				t.Errorf("%s: nothing is said, %d locks are held", name, locksOf(t, tx))
			}
		})
	}
}

// TestMarks_areNotSeenByOthers: what other plugins see of a statement's conditions, before and after, is what stands there.
func TestMarks_areNotSeenByOthers(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	stand.MustDo(t, db.Create(&stand.Account{ID: 1, Balance: 1}))
	var seen []string
	look := func(tx *gorm.DB) {
		stmt := &gorm.Statement{DB: tx, Clauses: tx.Statement.Clauses, Table: tx.Statement.Table, Schema: tx.Statement.Schema}
		stmt.Build("WHERE")
		seen = append(seen, stmt.SQL.String())
		var n int64 // and may ask with them
		if where, ok := tx.Statement.Clauses["WHERE"].Expression.(clause.Where); ok {
			stand.MustDo(t, tx.Session(&gorm.Session{NewDB: true}).Table("accounts").Clauses(where).Count(&n))
			stand.Equal(t, "rows", n, 1)
		}
	}
	for _, place := range []string{"gorm:commit_or_rollback_transaction", "gormlock:after_end", "gorm:update"} {
		stand.Must(t, db.Callback().Update().After(place).Register("look after "+place, look))
	}
	stand.Must(t, db.Callback().Query().After("gorm:query").Register("look", func(tx *gorm.DB) {
		if _, dry := tx.Get("looked"); tx.Statement.Table == "accounts" && !dry && tx.Statement.Schema != nil {
			look(tx)
		}
	}))
	for clauseName, c := range map[string]clause.Expression{"IgnoreVersion": gormlock.IgnoreVersion(), "XactLock": gormlock.XactLock(gormlock.Key("seen"))} {
		stand.InTx(t, db, func(tx *gorm.DB) {
			seen = nil
			stand.MustDo(t, tx.Clauses(c).Model(&stand.Account{}).Where("id = 1").Update("balance", 7))
			stand.MustDo(t, tx.Clauses(c).Where("id = 1").Find(&[]stand.Account{}))
			stand.Equal(t, clauseName, fmt.Sprintf("%q", seen), fmt.Sprintf("%q", []string{"WHERE id = 1", "WHERE id = 1", "WHERE id = 1", "WHERE id = 1"}))
		})
	}
}

// audited is a model whose hooks, and those who audit it, look at the rows that the statement speaks of.
type audited struct {
	ID      int64
	N       int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
	seen    int64
}

func (a *audited) AfterUpdate(tx *gorm.DB) error {
	return tx.Model(&audited{}).Where(tx).Count(&a.seen).Error
}

func (a *audited) BeforeDelete(tx *gorm.DB) error {
	return tx.Model(&audited{}).Where(tx).Count(&a.seen).Error
}

// TestMarks_whileTheStatementRuns: a hook and a plugin may ask with the conditions of the statement that runs. It does what
// it was asked already.
func TestMarks_whileTheStatementRuns(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&audited{}})
	for _, place := range []string{"gorm:update", "gorm:after_update"} {
		stand.Must(t, db.Callback().Update().Before(place).Register("audit before "+place, func(tx *gorm.DB) {
			var n int64
			if err := tx.Session(&gorm.Session{NewDB: true}).Table(tx.Statement.Table).Where(tx).Count(&n).Error; err != nil || n != 1 {
				_ = tx.AddError(fmt.Errorf("audit: %d rows: %w", n, err))
			}
		}))
	}
	for name, c := range map[string]clause.Expression{
		"nothing": clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "true"}}}, "IgnoreVersion": gormlock.IgnoreVersion(),
		"PreserveVersion": gormlock.PreserveVersion(), "ExpectVersion": gormlock.ExpectVersion(1), "IfMatch": stand.IfMatch("*"), "XactLock": gormlock.XactLock(gormlock.Key("running")),
	} {
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.MustDo(t, tx.Exec("truncate auditeds"))
			stand.MustDo(t, tx.Create(&audited{ID: 1}))
			a := audited{ID: 1, Version: 1}
			stand.MustDo(t, tx.SavePoint("before"))
			stand.MustDo(t, tx.Clauses(c).Model(&a).Where("id = 1").Update("n", 5))
			stand.Equal(t, name, a.seen, 1)
			stand.MustDo(t, tx.RollbackTo("before"))
			stand.MustDo(t, tx.Clauses(c).Where("id = 1").Delete(&audited{ID: 1, Version: 1}))
		})
	}
}

// TestMarks_ofCallbacks: what a callback asks of a create when our own are through is not dropped.
func TestMarks_ofCallbacks(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}, &stand.Queue{}})
	stand.Must(t, db.Callback().Create().Before("gorm:create").Register("lock", func(tx *gorm.DB) {
		tx.Statement.AddClause(gormlock.XactLock(gormlock.Key("of a callback")))
	}))
	stand.InTx(t, db, func(tx *gorm.DB) {
		for _, value := range []any{&stand.Account{}, &stand.Queue{}} {
			stand.MustDo(t, tx.SavePoint("before"))
			err := tx.Create(value).Error
			if err == nil {
				stand.Equal(t, fmt.Sprintf("locks of %T", value), locksOf(t, tx), 1)
			}
			stand.MustDo(t, tx.RollbackTo("before"))
		}
	})
}
