package gormlock_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// pair makes an account and a copy of it that is stale.
func pair(t testing.TB, db *gorm.DB) (fresh, stale account) {
	t.Helper()
	must(t, db.Create(&fresh).Error)
	stale = fresh
	must(t, db.Model(&fresh).Update("balance", 1).Error)
	return fresh, stale
}

// H19: a conflict that the caller swallows.
func TestH19_SwallowedConflicts(t *testing.T) {
	t.Parallel()
	db := versioned(t, []any{&account{}, &customer{}, &tag{}, &orderRow{}, &line{}, &invoice{}})
	fresh, stale := pair(t, db)
	write := func(tx *gorm.DB) { must(t, tx.Model(&fresh).Update("balance", 77).Error) }
	swallow := func(tx *gorm.DB) { mustStale(t, tx.Model(&stale).Update("balance", 2).Error) }
	version := fresh.Version
	unchanged := func(t *testing.T) {
		t.Helper()
		equal(t, "row", row[account](t, db, fresh.ID).Version, version)
		equal(t, "memory", fresh.Version, version)
	}

	mustStale(t, gormlock.Transaction(db, func(tx *gorm.DB) error {
		write(tx)
		swallow(tx)
		return nil
	}))
	unchanged(t)
	mustStale(t, gormlock.Transaction(db, func(tx *gorm.DB) error {
		write(tx)
		return tx.Transaction(func(tx *gorm.DB) error { swallow(tx); return nil })
	}))
	unchanged(t)
	// A nested transaction dooms only itself.
	must(t, gormlock.Transaction(db, func(tx *gorm.DB) error {
		mustStale(t, gormlock.Transaction(tx, func(tx *gorm.DB) error {
			write(tx)
			swallow(tx)
			return nil
		}))
		unchanged(t)
		write(tx)
		return nil
	}))
	version = row[account](t, db, fresh.ID).Version
	unchanged(t)

	// V5: in a plain transaction a conflict of one row leaves it usable.
	must(t, db.Transaction(func(tx *gorm.DB) error {
		swallow(tx)
		write(tx)
		return nil
	}))
	version = row[account](t, db, fresh.ID).Version
	unchanged(t)
	// V5: where the statement wrote something, the transaction cannot be committed.
	other, _ := pair(t, db)
	batch := []account{other, stale}
	mustStale(t, db.Transaction(func(tx *gorm.DB) error {
		mustStale(t, tx.Model(&batch).Update("balance", 3).Error)
		return nil
	}))
	unchanged(t)
	mustStale(t, db.Transaction(func(tx *gorm.DB) error {
		mustStale(t, tx.Save(&batch).Error)
		return nil
	}))
	unchanged(t)
	o := newOrder(t, db)
	old := load(t, db, o.ID)
	must(t, db.Model(o).Update("title", "x").Error)
	old.Customer = &customer{Name: "new"}
	mustStale(t, db.Transaction(func(tx *gorm.DB) error {
		mustStale(t, tx.Save(old).Error)
		return nil
	}))
	var customers int64
	must(t, db.Model(&customer{}).Count(&customers).Error)
	equal(t, "customers", customers, 1)
	equal(t, "new again", old.Customer.ID, 0)
}

// P21, R12, V11: at REPEATABLE READ the server refuses, and it is the same error.
func TestR12_RepeatableRead(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(tx *gorm.DB, a *account) error{
		"update": func(tx *gorm.DB, a *account) error { return tx.Model(a).Update("balance", 5).Error },
		"save":   func(tx *gorm.DB, a *account) error { return tx.Save(a).Error },
		"delete": func(tx *gorm.DB, a *account) error { return tx.Delete(a).Error },
		"upsert": func(tx *gorm.DB, a *account) error { return tx.Save([]*account{a}).Error },
		"verify": func(tx *gorm.DB, a *account) error { return gormlock.VerifyVersion(tx, a) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := versioned(t, []any{&account{}})
			var a account
			must(t, db.Create(&a).Error)
			err := gormlock.Transaction(db, func(tx *gorm.DB) error {
				must(t, tx.First(&a, a.ID).Error)
				must(t, db.Model(&account{}).Where("id = ?", a.ID).Update("balance", 9).Error)
				before := a
				err := write(tx, &a)
				equal(t, "memory", a, before)
				return err
			}, gormlock.Isolation(sql.LevelRepeatableRead))
			e := mustBeStale(t, err)
			equal[any](t, "actual", e.Actual, nil)
			equal[any](t, "expected", e.Expected, int64(1))
			equal(t, "retryable", gormlock.IsRetryable(err), true)
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
			db := versioned(t, []any{&account{}}, opts...)
			all := make([]account, 5000)
			must(t, db.Create(&all).Error)
			for i := 0; i < len(all); i += 100 { // many different versions
				all[i].Version = int64(i) + 2
			}
			must(t, db.Exec("UPDATE accounts SET version = id + 1 WHERE id % 100 = 1").Error)
			must(t, db.Model(&all).Update("balance", 1).Error)
			equal(t, "bumped", all[4900].Version, 4903)
			before := append([]account(nil), all...)
			must(t, db.Exec("UPDATE accounts SET version = version + 5 WHERE id IN (7, 4711)").Error)
			must(t, db.Delete(&account{}, 13).Error)
			for op, write := range map[string]func() error{
				"update": func() error { return db.Model(&all).Update("balance", 2).Error },
				"delete": func() error { return db.Delete(&all).Error },
				"save":   func() error { return db.Save(&all).Error },
			} {
				err := write()
				mustStale(t, err)
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
			must(t, db.Model(&account{}).Where("balance <> 1").Count(&written).Error)
			equal(t, "table", written, 0)
		})
	}
}

// R31: writers that know nothing of versions.
func TestR31_Trigger(t *testing.T) {
	t.Parallel()
	db := versioned(t, []any{&account{}})
	for range 2 {
		must(t, db.Exec(gormlock.VersionTrigger("accounts", "version")).Error)
	}
	var a account
	must(t, db.Create(&a).Error)
	must(t, db.Model(&a).Update("balance", 1).Error)
	equal(t, "ours is left alone", row[account](t, db, a.ID).Version, 2)
	must(t, db.Exec("UPDATE accounts SET balance = 9").Error)
	equal(t, "theirs is seen", row[account](t, db, a.ID).Version, 3)
	mustStale(t, db.Save(&a).Error)
}

// V10: a read-modify-write of one hot row.
func TestV10_Retry(t *testing.T) {
	t.Parallel()
	db := versioned(t, []any{&account{}}, pgtest.MaxConns(16))
	var a account
	must(t, db.Create(&a).Error)
	const writers, rounds = 16, 50
	errs := make(chan error, writers)
	for range writers {
		go func() {
			for range rounds {
				if err := gormlock.Transaction(db, func(tx *gorm.DB) error {
					var mine account
					if err := tx.First(&mine, a.ID).Error; err != nil {
						return err
					}
					mine.Balance++
					return tx.Save(&mine).Error
				}, gormlock.Attempts(20)); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range writers {
		must(t, <-errs)
	}
	equal(t, "counter", row[account](t, db, a.ID).Balance, writers*rounds)
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
			must(t, db.AutoMigrate(&account{}))
			fresh, stale := pair(t, db)
			before := row[account](t, db, fresh.ID)
			other := account{Balance: 7}
			must(t, db.Create(&other).Error)
			if err := inTransaction(func(tx *gorm.DB) error {
				mustStale(t, tx.Model(&[]account{other, stale}).Update("balance", 3).Error)
				return nil
			}); err == nil {
				t.Error("half a batch is committed")
			}
			equal(t, "the fresh one", row[account](t, db, other.ID), account{ID: other.ID, Balance: 7, Version: 1})
			equal(t, "the stale one", row[account](t, db, fresh.ID), before)

			must(t, inTransaction(func(tx *gorm.DB) error {
				mustStale(t, tx.Transaction(func(tx *gorm.DB) error { return tx.Model(&[]account{other, stale}).Update("balance", 3).Error }))
				return tx.Model(&account{ID: other.ID, Version: 1}).Update("balance", 8).Error
			}))
			equal(t, "after a savepoint", row[account](t, db, other.ID).Balance, 8)
			must(t, inTransaction(func(tx *gorm.DB) error { // one row, nothing written: the transaction goes on
				mustStale(t, tx.Model(&stale).Update("balance", 3).Error)
				return tx.Model(&account{ID: other.ID, Version: 2}).Update("balance", 9).Error
			}))
		})
	}
}
