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

// TestCtxEndsATransaction: ctx ends the transaction on the server, and the program calls neither Commit nor Rollback. The next
// write of a struct of the transaction knows that.
func TestCtxEndsATransaction(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	pool, err := db.DB()
	stand.Must(t, err)
	for name, after := range map[string]struct {
		do   func(a *stand.Account) error
		want error
	}{
		"save":       {func(a *stand.Account) error { return db.Save(a).Error }, gormlock.ErrStale},
		"update":     {func(a *stand.Account) error { return db.Model(a).Update("balance", 9).Error }, gormlock.ErrStale},
		"delete":     {func(a *stand.Account) error { return db.Delete(a).Error }, gormlock.ErrStale},
		"batch":      {func(a *stand.Account) error { return db.Save([]*stand.Account{a}).Error }, gormlock.ErrStale},
		"read again": {func(a *stand.Account) error { return errors.Join(db.First(a).Error, db.Save(a).Error) }, nil},
		"read, late": {func(a *stand.Account) error {
			return errors.Join(db.First(a).Error, db.Save(a).Error, db.Save(a).Error)
		}, nil},
		"a read one":   {nil, gormlock.ErrVersionMissing},
		"a new struct": {func(*stand.Account) error { b := stand.Row[stand.Account](t, db, 1); return db.Save(&b).Error }, nil},
	} {
		stand.MustDo(t, db.Exec("TRUNCATE accounts"))
		a := stand.Account{ID: 1, Balance: 100}
		stand.MustDo(t, db.Create(&a))
		var read stand.Account
		ctx, cancel := context.WithCancel(t.Context())
		tx := db.WithContext(ctx).Begin()
		a.Balance = 5
		stand.MustDo(t, tx.Save(&a))
		stand.MustDo(t, tx.First(&read, 1))
		cancel()
		pgtest.Eventually(t, "the rollback", func() bool { return pool.Stats().InUse == 0 })
		stand.MustDo(t, db.Exec("UPDATE accounts SET balance = 777, version = version + 1"))
		do, of := after.do, &a
		if do == nil {
			do, of = func(a *stand.Account) error { return db.Save(a).Error }, &read
		}
		if err := do(of); !errors.Is(err, after.want) {
			t.Errorf("%s: %v", name, err)
		}
		if after.want != nil {
			stand.Equal(t, name, stand.Row[stand.Account](t, db, 1).Balance, 777)
		}
		_ = tx.Rollback()
	}
	b := stand.Account{ID: 2}
	ctx, cancel := context.WithCancel(t.Context())
	tx := db.WithContext(ctx).Begin()
	stand.MustDo(t, tx.Create(&b))
	cancel()
	pgtest.Eventually(t, "the rollback", func() bool { return pool.Stats().InUse == 0 })
	stand.MustDo(t, db.Create(&b)) // as a program may that tries again
	stand.Equal(t, "created", b, stand.Row[stand.Account](t, db, 2))
	_ = tx.Rollback()
}

// TestCtxEndsATransaction_behindAWrite: ctx ends the transaction when the server has written, and gormlock does not know yet.
func TestCtxEndsATransaction_behindAWrite(t *testing.T) {
	t.Parallel()
	db, a := stand.Stored(t, stand.Account{Balance: 100})
	pool, err := db.DB()
	stand.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	end := func(db *gorm.DB) {
		if db.Statement.Context == ctx {
			cancel()
			pgtest.Eventually(t, "the rollback", func() bool { return pool.Stats().InUse == 0 })
		}
	}
	stand.Must(t, db.Callback().Update().After("gorm:update").Before("gormlock:after_write").Register("test:end", end))
	tx := db.WithContext(ctx).Begin()
	a.Balance = 5
	_ = tx.Save(&a).Error
	stand.MustDo(t, db.Exec("UPDATE accounts SET balance = 777, version = version + 1"))
	stand.MustStale(t, db.Save(&a).Error)
	stand.Equal(t, "balance", stand.Row[stand.Account](t, db, a.ID).Balance, 777)
	_ = tx.Rollback()
}

// G24: after the end of its ctx the transaction is rolled back while its function runs on. What it wrote is taken back at the
// next statement, not only at the end.
func TestG24_StructsWhenCtxEnds(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	var a stand.Account
	stand.MustDo(t, db.Create(&a))
	ctx, cancel := context.WithCancel(t.Context())
	_ = db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Model(&a).Update("balance", 2))
		pid := backend(t, tx)
		cancel()
		waitNotInTransaction(t, pid)
		if err := tx.WithContext(t.Context()).Exec("SELECT 1").Error; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		stand.Equal(t, "version", a.Version, 1)
		return nil
	})
	stand.Equal(t, "version", a.Version, 1)
}
