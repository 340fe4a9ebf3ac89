package claims_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// TestClaim_rolledBack: after a rollback, claimed structs still hold what the claim assigned. No write stores it, and structs that the transaction
// had before are as they were.
func TestClaim_rolledBack(t *testing.T) {
	t.Parallel()
	claims := map[string]map[string]any{
		"a value":               {"balance": 5},
		"an expression":         {"balance": gorm.Expr("balance + 1")},
		"an unversioned column": {"note": "claimed"},
		"both":                  {"balance": gorm.Expr("balance + 1"), "note": "claimed"},
	}
	endings := map[string]func(db *gorm.DB, claim func(tx *gorm.DB)){
		"Rollback": func(db *gorm.DB, claim func(tx *gorm.DB)) {
			_ = db.Transaction(func(tx *gorm.DB) error {
				claim(tx)
				return errUndone
			})
		},
		"a savepoint": func(db *gorm.DB, claim func(tx *gorm.DB)) {
			_ = db.Transaction(func(tx *gorm.DB) error {
				_ = tx.Transaction(func(tx *gorm.DB) error {
					claim(tx)
					return errUndone
				})
				return nil
			})
		},
		"ctx": func(db *gorm.DB, claim func(tx *gorm.DB)) {
			ctx, cancel := context.WithCancel(db.Statement.Context)
			tx := db.WithContext(ctx).Begin()
			claim(tx)
			cancel()
			pool, _ := db.DB()
			pgtest.Eventually(t, "the rollback", func() bool { return pool.Stats().InUse == 0 })
		},
	}
	for server, db := range map[string]*gorm.DB{
		"PostgreSQL": stand.Versioned(t, []any{&stand.Account{}}), "MariaDB": mariaserver.Open(t, []any{&stand.Account{}}),
	} {
		for how, assign := range claims {
			for end, run := range endings {
				name := server + ", " + how + ", " + end
				stand.MustDo(t, db.Exec("DELETE FROM accounts"))
				made := stand.Made(t, db, stand.Account{Balance: 1, Note: "old"})
				var before stand.Account
				var claimed []stand.Account
				run(db, func(tx *gorm.DB) {
					stand.MustDo(t, tx.First(&before, made.ID))
					var err error
					if claimed, err = gormlock.Claim[stand.Account](tx, 1, assign); err != nil || len(claimed) != 1 {
						t.Fatal(name, claimed, err)
					}
				})
				for _, save := range map[string]func(a *stand.Account) error{
					"Save":   func(a *stand.Account) error { return db.Save(a).Error },
					"Update": func(a *stand.Account) error { return db.Model(a).Update("balance", 9).Error },
				} {
					if err := save(&claimed[0]); !errors.Is(err, gormlock.ErrVersionMissing) {
						t.Errorf("%s: %v", name, err)
					}
				}
				before.Balance = 7
				stand.MustDo(t, db.Save(&before))
				stand.Equal(t, name, before, stand.Row[stand.Account](t, db, made.ID))
				stand.Equal(t, name+": the note", before.Note, "old")
			}
		}
	}
}
