package versions_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// pair makes an account and a copy of it that is stale.
func pair(t testing.TB, db *gorm.DB) (fresh, stale stand.Account) {
	t.Helper()
	stand.Must(t, db.Create(&fresh).Error)
	stale = fresh
	stand.Must(t, db.Model(&fresh).Update("balance", 1).Error)
	return fresh, stale
}

// H19: a conflict that the caller swallows.
func TestH19_SwallowedConflicts(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}, &customer{}, &tag{}, &orderRow{}, &line{}, &invoice{}})
	fresh, stale := pair(t, db)
	write := func(tx *gorm.DB) { stand.Must(t, tx.Model(&fresh).Update("balance", 77).Error) }
	swallow := func(tx *gorm.DB) { stand.MustStale(t, tx.Model(&stale).Update("balance", 2).Error) }
	version := fresh.Version
	unchanged := func(t *testing.T) {
		t.Helper()
		stand.Equal(t, "row", stand.Row[stand.Account](t, db, fresh.ID).Version, version)
		stand.Equal(t, "memory", fresh.Version, version)
	}

	stand.MustStale(t, gormlock.Transaction(db, func(tx *gorm.DB) error {
		write(tx)
		swallow(tx)
		return nil
	}))
	unchanged(t)
	stand.MustStale(t, gormlock.Transaction(db, func(tx *gorm.DB) error {
		write(tx)
		return tx.Transaction(func(tx *gorm.DB) error { swallow(tx); return nil })
	}))
	unchanged(t)
	// A nested transaction dooms only itself.
	stand.Must(t, gormlock.Transaction(db, func(tx *gorm.DB) error {
		stand.MustStale(t, gormlock.Transaction(tx, func(tx *gorm.DB) error {
			write(tx)
			swallow(tx)
			return nil
		}))
		unchanged(t)
		write(tx)
		return nil
	}))
	version = stand.Row[stand.Account](t, db, fresh.ID).Version
	unchanged(t)

	// V5: in a plain transaction a conflict of one row leaves it usable.
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		swallow(tx)
		write(tx)
		return nil
	}))
	version = stand.Row[stand.Account](t, db, fresh.ID).Version
	unchanged(t)
	// V5: where the statement wrote something, the transaction cannot be committed.
	other, _ := pair(t, db)
	batch := []stand.Account{other, stale}
	stand.MustStale(t, db.Transaction(func(tx *gorm.DB) error {
		stand.MustStale(t, tx.Model(&batch).Update("balance", 3).Error)
		return nil
	}))
	unchanged(t)
	stand.MustStale(t, db.Transaction(func(tx *gorm.DB) error {
		stand.MustStale(t, tx.Save(&batch).Error)
		return nil
	}))
	unchanged(t)
	o := newOrder(t, db)
	old := load(t, db, o.ID)
	stand.Must(t, db.Model(o).Update("title", "x").Error)
	old.Customer = &customer{Name: "new"}
	stand.MustStale(t, db.Transaction(func(tx *gorm.DB) error {
		stand.MustStale(t, tx.Save(old).Error)
		return nil
	}))
	var customers int64
	stand.Must(t, db.Model(&customer{}).Count(&customers).Error)
	stand.Equal(t, "customers", customers, 1)
	stand.Equal(t, "new again", old.Customer.ID, 0)
}

// P21, R12, V11: at REPEATABLE READ the server refuses, and it is the same error.
func TestR12_RepeatableRead(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(tx *gorm.DB, a *stand.Account) error{
		"update": func(tx *gorm.DB, a *stand.Account) error { return tx.Model(a).Update("balance", 5).Error },
		"save":   func(tx *gorm.DB, a *stand.Account) error { return tx.Save(a).Error },
		"delete": func(tx *gorm.DB, a *stand.Account) error { return tx.Delete(a).Error },
		"upsert": func(tx *gorm.DB, a *stand.Account) error { return tx.Save([]*stand.Account{a}).Error },
		"verify": func(tx *gorm.DB, a *stand.Account) error { return gormlock.VerifyVersion(tx, a) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&stand.Account{}})
			var a stand.Account
			stand.Must(t, db.Create(&a).Error)
			err := gormlock.Transaction(db, func(tx *gorm.DB) error {
				stand.Must(t, tx.First(&a, a.ID).Error)
				stand.Must(t, db.Model(&stand.Account{}).Where("id = ?", a.ID).Update("balance", 9).Error)
				before := a
				err := write(tx, &a)
				stand.Equal(t, "memory", a, before)
				return err
			}, gormlock.Isolation(sql.LevelRepeatableRead))
			e := stand.MustBeStale(t, err)
			stand.Equal[any](t, "actual", e.Actual, nil)
			stand.Equal[any](t, "expected", e.Expected, int64(1))
			stand.Equal(t, "retryable", gormlock.IsRetryable(err), true)
			var coded interface{ SQLState() string }
			if !errors.As(err, &coded) || coded.SQLState() != "40001" {
				t.Error("what the server said is lost", err)
			}
		})
	}
}

// V19: a batch of 5,000 rows with stale ones fails as a whole and says which.
func TestV19_HugeBatch(t *testing.T) {
	t.Parallel()
	for _, skip := range []bool{false, true} {
		t.Run(fmt.Sprintf("skip=%v", skip), func(t *testing.T) {
			t.Parallel()
			var opts []pgtest.Option
			if skip {
				opts = append(opts, pgtest.SkipDefaultTransaction())
			}
			db := stand.Versioned(t, []any{&stand.Account{}}, opts...)
			all := make([]stand.Account, 5000)
			stand.Must(t, db.Create(&all).Error)
			for i := 0; i < len(all); i += 100 { // many different versions
				all[i].Version = int64(i) + 2
			}
			stand.Must(t, db.Exec("UPDATE accounts SET version = id + 1 WHERE id % 100 = 1").Error)
			stand.Must(t, db.Model(&all).Update("balance", 1).Error)
			stand.Equal(t, "bumped", all[4900].Version, 4903)
			before := append([]stand.Account(nil), all...)
			stand.Must(t, db.Exec("UPDATE accounts SET version = version + 5 WHERE id IN (7, 4711)").Error)
			stand.Must(t, db.Delete(&stand.Account{}, 13).Error)
			for op, write := range map[string]func() error{
				"update": func() error { return db.Model(&all).Update("balance", 2).Error },
				"delete": func() error { return db.Delete(&all).Error },
				"save":   func() error { return db.Save(&all).Error },
			} {
				err := write()
				stand.MustStale(t, err)
				for _, part := range []string{"id=7: version 2 is stale, the row is at 7", "id=4711: version 2", "id=13: version 2 is stale, the row is gone"} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%s does not say %q: %.300s", op, part, err)
					}
				}
				for i := range all {
					if all[i] != before[i] {
						t.Fatalf("%s: memory %v, was %v", op, all[i], before[i])
					}
				}
			}
			var written int64
			stand.Must(t, db.Model(&stand.Account{}).Where("balance <> 1").Count(&written).Error)
			stand.Equal(t, "table", written, 0)
		})
	}
}

// R31: writers that do not move versions.
func TestR31_Trigger(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	for range 2 {
		stand.Must(t, db.Exec(gormlock.VersionTrigger("accounts", "version")).Error)
	}
	var a stand.Account
	stand.Must(t, db.Create(&a).Error)
	stand.Must(t, db.Model(&a).Update("balance", 1).Error)
	stand.Equal(t, "ours is left alone", stand.Row[stand.Account](t, db, a.ID).Version, 2)
	stand.Must(t, db.Exec("UPDATE accounts SET balance = 9").Error)
	stand.Equal(t, "theirs is seen", stand.Row[stand.Account](t, db, a.ID).Version, 3)
	stand.MustStale(t, db.Save(&a).Error)
}

// TestV5_InATransactionThatNobodySees: where gormlock does not see the commit, the server refuses what was written by half,
// and a savepoint set before heals it.
func TestV5_InATransactionThatNobodySees(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) (*gorm.DB, func(func(*gorm.DB) error) error){
		"PlainTransactions": func(t *testing.T) (*gorm.DB, func(func(*gorm.DB) error) error) {
			t.Helper()
			db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New(gormlock.PlainTransactions())))
			return db, func(fn func(*gorm.DB) error) error { return db.Transaction(fn) }
		},
		"db.Connection": func(t *testing.T) (*gorm.DB, func(func(*gorm.DB) error) error) {
			t.Helper()
			db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
			return db, func(fn func(*gorm.DB) error) error {
				return db.Connection(func(c *gorm.DB) error { return c.Transaction(fn) })
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, inTransaction := open(t)
			stand.Must(t, db.AutoMigrate(&stand.Account{}))
			fresh, stale := pair(t, db)
			before := stand.Row[stand.Account](t, db, fresh.ID)
			other := stand.Made(t, db, stand.Account{Balance: 7})
			if err := inTransaction(func(tx *gorm.DB) error {
				stand.MustStale(t, tx.Model(&[]stand.Account{other, stale}).Update("balance", 3).Error)
				return nil
			}); err == nil {
				t.Error("half a batch is committed")
			}
			stand.Equal(t, "the fresh one", stand.Row[stand.Account](t, db, other.ID), stand.Account{ID: other.ID, Balance: 7, Version: 1})
			stand.Equal(t, "the stale one", stand.Row[stand.Account](t, db, fresh.ID), before)

			stand.Must(t, inTransaction(func(tx *gorm.DB) error {
				stand.MustStale(t, tx.Transaction(func(tx *gorm.DB) error { return tx.Model(&[]stand.Account{other, stale}).Update("balance", 3).Error }))
				return tx.Model(&stand.Account{ID: other.ID, Version: 1}).Update("balance", 8).Error
			}))
			stand.Equal(t, "after a savepoint", stand.Row[stand.Account](t, db, other.ID).Balance, 8)
			stand.Must(t, inTransaction(func(tx *gorm.DB) error { // one row, nothing written: the transaction goes on
				stand.MustStale(t, tx.Model(&stale).Update("balance", 3).Error)
				return tx.Model(&stand.Account{ID: other.ID, Version: 2}).Update("balance", 9).Error
			}))
		})
	}
}
