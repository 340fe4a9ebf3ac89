package transactions_test

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"testing"
	"weak"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/etag"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// abandoned is a struct that a transaction has written, and one that it has read then. Its ctx has ended, nobody has rolled it back, and
// a rival has written the row since, to the same version.
func abandoned(t *testing.T, db *gorm.DB) (written, read *stand.Account, tx *gorm.DB) {
	t.Helper()
	pool, err := db.DB()
	stand.Must(t, err)
	made := stand.Made(t, db, stand.Account{Balance: 100})
	written, read = &made, &stand.Account{}
	ctx, cancel := context.WithCancel(t.Context())
	tx = db.WithContext(ctx).Begin()
	written.Balance = 5
	stand.MustDo(t, tx.Save(written))
	stand.MustDo(t, tx.First(read, written.ID))
	cancel()
	pgtest.Eventually(t, "the rollback", func() bool { return pool.Stats().InUse == 0 })
	stand.MustDo(t, db.Exec("UPDATE accounts SET balance = 777, version = version + 1 WHERE id = ?", written.ID))
	return written, read, tx
}

// TestCtxEndsATransaction_compared: each call that compares a struct with its row knows that the struct is of a transaction that ctx has ended.
func TestCtxEndsATransaction_compared(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	inTx := func(call func(tx *gorm.DB) error) error { return db.Transaction(call) }
	for name, call := range map[string]func(a *stand.Account) error{
		"Save":    func(a *stand.Account) error { return db.Save(a).Error },
		"slice":   func(a *stand.Account) error { return db.Save([]*stand.Account{a}).Error },
		"Update":  func(a *stand.Account) error { return db.Model(a).Update("balance", -1).Error },
		"Updates": func(a *stand.Account) error { return db.Updates(a).Error },
		"Delete":  func(a *stand.Account) error { return db.Delete(a).Error },
		"upsert":  func(a *stand.Account) error { return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(a).Error },
		"gorm.G": func(a *stand.Account) error {
			return stand.ErrorOf(gorm.G[*stand.Account](db).Where("id = ?", a.ID).Updates(t.Context(), a))
		},
		"Touch": func(a *stand.Account) error { return gormlock.Touch(db, a) },
		"VerifyVersion": func(a *stand.Account) error {
			return inTx(func(tx *gorm.DB) error { return gormlock.VerifyVersion(tx, a) })
		},
		"LockRow that fails, then Save": func(a *stand.Account) error {
			return inTx(func(tx *gorm.DB) error {
				if err := gormlock.LockRow(tx.Where("balance < 0"), a); !errors.Is(err, gorm.ErrRecordNotFound) {
					t.Error(err)
				}
				return tx.Save(a).Error
			})
		},
		"LockRows that fail, then Save": func(a *stand.Account) error {
			return inTx(func(tx *gorm.DB) error {
				if err := gormlock.LockRows(tx.Where("balance < 0"), &[]*stand.Account{a}); !errors.Is(err, gorm.ErrRecordNotFound) {
					t.Error(err)
				}
				return tx.Save(a).Error
			})
		},
		"SaveMerged, base": func(a *stand.Account) error {
			mine := *a
			mine.Balance = -1
			return gormlock.SaveMerged(db, &mine, a)
		},
		"SaveMerged, a copy as base": func(a *stand.Account) error {
			base := *a
			a.Balance = -1
			return gormlock.SaveMerged(db, a, &base)
		},
		"IfUnchanged": func(a *stand.Account) error {
			stand.MustDo(t, db.Exec("UPDATE accounts SET balance = 5 WHERE id = ?", a.ID)) // as the transaction left it
			defer db.Exec("UPDATE accounts SET balance = 777 WHERE id = ?", a.ID)
			return db.Clauses(gormlock.IfUnchanged(a)).Model(&stand.Account{ID: a.ID}).Update("balance", -1).Error
		},
		"etag.Of": func(a *stand.Account) error {
			tag, err := etag.Of(a)
			if !errors.Is(err, etag.ErrNoVersion) {
				t.Errorf("the tag is %q: %v", tag, err)
			}
			return err
		},
	} {
		written, read, tx := abandoned(t, db)
		for of, a := range map[string]*stand.Account{"written": written, "read": read} {
			if name == "upsert" && of == "read" {
				continue // it stores what was not read, too
			}
			if err := call(a); !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing) {
				t.Errorf("%s of what was %s: %v", name, of, err)
			}
			stand.Equal(t, name+" of what was "+of, stand.Row[stand.Account](t, db, a.ID), stand.Account{ID: a.ID, Balance: 777, Version: 2})
		}
		_ = tx.Rollback()
	}
	for name, lock := range map[string]func(tx *gorm.DB, a *stand.Account) error{
		"LockRow":  func(tx *gorm.DB, a *stand.Account) error { return gormlock.LockRow(tx, a) },
		"LockRows": func(tx *gorm.DB, a *stand.Account) error { return gormlock.LockRows(tx, &[]*stand.Account{a}) },
	} {
		written, read, tx := abandoned(t, db)
		for of, a := range map[string]*stand.Account{"written": written, "read": read} {
			stand.Must(t, inTx(func(tx *gorm.DB) error { return errors.Join(lock(tx, a), tx.Save(a).Error) }))
			stand.Equal(t, name+" of what was "+of, a.Balance, 777)
		}
		_ = tx.Rollback()
	}
}

// TestCtxEndsATransaction_forgotten: nobody rolls the transaction back. Its structs are the program's alone in the end, and what the program still has
// cannot be written.
func TestCtxEndsATransaction_forgotten(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	written, read, tx := abandoned(t, db)
	gone := func() (all [2]weak.Pointer[stand.Account]) {
		written, read, tx := abandoned(t, db)
		journal.Of(tx.Statement).Forgotten()
		last := tx.Statement.ConnPool.(*sql.Tx)
		t.Cleanup(func() { _ = last.Rollback() }) // which the pool does too, later
		return [...]weak.Pointer[stand.Account]{weak.Make(written), weak.Make(read)}
	}()
	journal.Of(tx.Statement).Forgotten()
	if journal.Of(tx.Statement) != nil {
		t.Error("the journal is still there")
	}
	pgtest.Eventually(t, "the end of what the program has let go", func() bool {
		runtime.GC()
		return gone[0].Value() == nil && gone[1].Value() == nil
	})
	for of, a := range map[string]*stand.Account{"written": written, "read": read} {
		if err := db.Save(a).Error; !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing) {
			t.Errorf("what was %s: %v", of, err)
		}
		stand.Equal(t, of, stand.Row[stand.Account](t, db, a.ID).Balance, 777)
	}
	_ = tx.Rollback()
}
