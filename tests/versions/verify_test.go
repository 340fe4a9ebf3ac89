package versions_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// TestVerifyVersionWithARowLockByAScope: it counts as one on the call does.
func TestVerifyVersionWithARowLockByAScope(t *testing.T) {
	t.Parallel()
	db, a := stand.Stored(t, stand.Account{ID: 1})
	by := func(lock clause.Expression) func(*gorm.DB) *gorm.DB {
		return func(query *gorm.DB) *gorm.DB { return query.Clauses(lock) }
	}
	within := func(scope func(*gorm.DB) *gorm.DB) func(*gorm.DB) *gorm.DB {
		return func(query *gorm.DB) *gorm.DB { return query.Scopes(scope) }
	}
	stand.InTx(t, db, func(tx *gorm.DB) {
		for _, weak := range []clause.Expression{
			clause.Locking{Strength: "KEY SHARE"}, clause.Locking{Strength: "SHARE", Options: "SKIP LOCKED"},
			clause.Locking{Strength: "SHARE", Table: clause.Table{Name: "others"}},
			gormlock.RowLock(gormlock.ForKeyShare), gormlock.SkipLocked(),
		} {
			for _, scope := range []func(*gorm.DB) *gorm.DB{by(weak), within(by(weak))} {
				if err := gormlock.VerifyVersion(tx.Scopes(scope), &a); !errors.Is(err, gormlock.ErrOption) {
					t.Errorf("%v: %v", weak, err)
				}
			}
		}
		stand.Equal(t, "rows locked by what was refused", len(stand.NewRowRival(t).LockedAgainst("accounts", "FOR UPDATE")), 0)
		for _, strong := range []func(*gorm.DB) *gorm.DB{
			gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Try()), within(gormlock.WithRowLock(gormlock.ForUpdate)),
			by(clause.Locking{Strength: "UPDATE"}),
		} {
			stand.MustDo(t, tx.SavePoint("before"))
			stand.Must(t, gormlock.VerifyVersion(tx.Scopes(strong), &a))
			stand.Equal(t, "rows kept from readers", len(stand.NewRowRival(t).LockedAgainst("accounts", "FOR KEY SHARE")), 1)
			stand.MustDo(t, tx.RollbackTo("before"))
		}
		stand.Must(t, gormlock.VerifyVersion(tx.Scopes(func(query *gorm.DB) *gorm.DB { return query.Where("id > 0") }), &a))
		stand.Equal(t, "rows kept from writers", len(stand.NewRowRival(t).LockedAgainst("accounts", "FOR NO KEY UPDATE")), 1)
	})
	release := stand.NewRowRival(t).Hold("select * from accounts for update")
	defer release()
	stand.InTx(t, db, func(tx *gorm.DB) {
		if err := gormlock.VerifyVersion(tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Try())), &a); !errors.Is(err, gormlock.ErrNotAcquired) {
			t.Errorf("Try, while another holds the row: %v", err)
		}
	})
}

type filed struct {
	ID      int64
	Version int64 `gormlock:"version"`
}

func (filed) TableName() string { return "archive_of_verify.files" }

// TestVerifyVersionOfATableByItsNameInTheQuery: Of takes the name that the table has there, without its schema, or its
// alias.
func TestVerifyVersionOfATableByItsNameInTheQuery(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, nil)
	stand.MustDo(t, db.Exec("CREATE SCHEMA archive_of_verify"))
	t.Cleanup(func() { stand.MustDo(t, db.Exec("DROP SCHEMA archive_of_verify CASCADE")) })
	stand.MustDo(t, db.Exec("CREATE TABLE archive_of_verify.files (id bigint PRIMARY KEY, version bigint)"))
	row := stand.Made(t, db, filed{ID: 1})
	of := func(name string) []clause.Expression {
		return []clause.Expression{
			gormlock.RowLock(gormlock.ForUpdate, gormlock.Of(name)),
			clause.Locking{Strength: "UPDATE", Table: clause.Table{Name: name}},
		}
	}
	stand.InTx(t, db, func(tx *gorm.DB) {
		aliased := tx.Table("archive_of_verify.files AS f").Session(&gorm.Session{})
		for _, lock := range of("files") {
			stand.Must(t, gormlock.VerifyVersion(tx.Clauses(lock), &row))
			stand.Must(t, gormlock.VerifyVersion(tx.Table("archive_of_verify.files").Clauses(lock), &row))
			if err := gormlock.VerifyVersion(aliased.Clauses(lock), &row); !errors.Is(err, gormlock.ErrOption) {
				t.Errorf("%v: %v", lock, err)
			}
		}
		for _, lock := range of("f") {
			stand.Must(t, gormlock.VerifyVersion(aliased.Clauses(lock), &row))
			if err := gormlock.VerifyVersion(tx.Clauses(lock), &row); !errors.Is(err, gormlock.ErrOption) {
				t.Errorf("%v: %v", lock, err)
			}
		}
		stand.Must(t, gormlock.VerifyVersion(aliased, &row))
	})
}

// foreignLock is a row lock of somebody else's making.
type foreignLock struct{}

func (foreignLock) Name() string                   { return "FOR" }
func (foreignLock) Build(b clause.Builder)         { _, _ = b.WriteString("KEY SHARE") }
func (f foreignLock) MergeClause(c *clause.Clause) { c.Expression = f }

// TestVerifyVersionRefusesAForeignLock: nobody knows what it keeps out.
func TestVerifyVersionRefusesAForeignLock(t *testing.T) {
	t.Parallel()
	db, a := stand.Stored(t, stand.Account{ID: 1})
	stand.InTx(t, db, func(tx *gorm.DB) {
		if err := gormlock.VerifyVersion(tx.Clauses(foreignLock{}), &a); !errors.Is(err, gormlock.ErrOption) {
			t.Errorf("the row is not locked as it has to be: %v", err)
		}
	})
}
