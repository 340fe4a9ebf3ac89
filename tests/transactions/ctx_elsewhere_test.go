package transactions_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// TestCtxEndsATransaction_usedElsewhere: ctx ends a transaction, the program uses its struct elsewhere, and only then calls Rollback, as a defer or
// db.Transaction does. The struct holds its row then, and nothing takes it back once more.
func TestCtxEndsATransaction_usedElsewhere(t *testing.T) {
	t.Parallel()
	writes := map[string]func(db *gorm.DB, a *stand.Account) error{
		"Save": func(db *gorm.DB, a *stand.Account) error {
			a.Balance = 5
			return db.Save(a).Error
		},
		"an unversioned column": func(db *gorm.DB, a *stand.Account) error { return db.Model(a).Update("note", "new").Error },
		"PreserveVersion": func(db *gorm.DB, a *stand.Account) error {
			return db.Clauses(gormlock.PreserveVersion()).Model(a).Update("balance", 5).Error
		},
		"Touch": func(db *gorm.DB, a *stand.Account) error { return gormlock.Touch(db, a) },
		"SaveMerged": func(db *gorm.DB, a *stand.Account) error {
			if err := db.First(a).Error; err != nil { // ctx has left it unread
				return err
			}
			base := *a
			a.Balance = 5
			return gormlock.SaveMerged(db, a, &base)
		},
		"Create": func(db *gorm.DB, a *stand.Account) error { // SQLite gives the same key again
			*a = stand.Account{Balance: 5}
			return db.Create(a).Error
		},
		"a read after a write": func(db *gorm.DB, a *stand.Account) error {
			return errors.Join(db.Exec("UPDATE accounts SET balance = 5").Error, db.First(a).Error)
		},
	}
	type write = func(db *gorm.DB, a *stand.Account) error
	uses := map[string]func(t *testing.T, db, tx *gorm.DB, a *stand.Account, write write){
		"written": func(t *testing.T, db, _ *gorm.DB, a *stand.Account, write write) { stand.Must(t, write(db, a)) },
		"written in a transaction": func(t *testing.T, db, _ *gorm.DB, a *stand.Account, write write) {
			stand.Must(t, db.Transaction(func(tx *gorm.DB) error { return write(tx, a) }))
		},
		"written, then tried again": func(t *testing.T, db, tx *gorm.DB, a *stand.Account, write write) {
			stand.Must(t, write(db, a))
			is := *a
			if tx.Save(a).Error == nil {
				t.Error("saved after the end of ctx")
			}
			stand.Must(t, db.Model(a).Update("balance", is.Balance).Error)
		},
		"read after a rival": func(t *testing.T, db, _ *gorm.DB, a *stand.Account, write write) {
			rival := stand.Account{}
			if db.First(&rival, a.ID); rival.ID == 0 {
				stand.Must(t, write(db, &rival))
			}
			stand.MustDo(t, db.Exec("UPDATE accounts SET balance = 5, note = 'new'"))
			a.ID = rival.ID
			stand.MustDo(t, db.First(a))
		},
	}
	ends := map[string]func(db *gorm.DB, fn func(tx *gorm.DB) error){
		"Rollback": func(db *gorm.DB, fn func(tx *gorm.DB) error) {
			tx := db.Begin()
			defer tx.Rollback()
			_ = fn(tx)
		},
		"Transaction":          func(db *gorm.DB, fn func(tx *gorm.DB) error) { _ = db.Transaction(fn) },
		"gormlock.Transaction": func(db *gorm.DB, fn func(tx *gorm.DB) error) { _ = gormlock.Transaction(db, fn) },
	}
	stand.OnBoth(t, []any{&stand.Account{}}, func(t *testing.T, db *gorm.DB) {
		pool, err := db.DB()
		stand.Must(t, err)
		for how, write := range writes {
			for what, use := range uses {
				for end, within := range ends {
					name := how + ", " + what + ", " + end
					stand.MustDo(t, db.Exec("DELETE FROM accounts"))
					a := stand.Made(t, db, stand.Account{Balance: 1})
					ctx, cancel := context.WithCancel(t.Context())
					within(db.WithContext(ctx), func(tx *gorm.DB) error {
						stand.Must(t, write(tx, &a))
						cancel()
						pgtest.Eventually(t, "the rollback", func() bool { return pool.Stats().InUse == 0 })
						use(t, db, tx, &a, write)
						return errors.New("no")
					})
					stand.Equal(t, name, a, stand.Row[stand.Account](t, db, a.ID))
					if err := db.Model(&a).Update("balance", 7).Error; err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			}
		}
	})
}
