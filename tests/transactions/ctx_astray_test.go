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

// TestCtxEndsATransaction_atOnce: ctx ends a transaction while a rival waits for its row. The server lets him have it with the rollback, and
// the program writes the struct elsewhere at once.
func TestCtxEndsATransaction_atOnce(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]func(tx *gorm.DB, a *stand.Account) error{
		"no statement": nil,
		"a read":       func(tx *gorm.DB, _ *stand.Account) error { return tx.First(&stand.Account{}).Error },
		"a save":       func(tx *gorm.DB, a *stand.Account) error { return tx.Save(a).Error },
		"an Exec":      func(tx *gorm.DB, _ *stand.Account) error { return tx.Exec("SELECT 1").Error },
		"a Scan":       func(tx *gorm.DB, _ *stand.Account) error { return tx.Raw("SELECT 1").Scan(new(int)).Error },
		"a savepoint": func(tx *gorm.DB, a *stand.Account) error {
			return tx.Transaction(func(tx *gorm.DB) error { return tx.Save(a).Error })
		},
		"LockRow":       func(tx *gorm.DB, a *stand.Account) error { return gormlock.LockRow(tx, a) },
		"VerifyVersion": func(tx *gorm.DB, a *stand.Account) error { return gormlock.VerifyVersion(tx, a) },
		"SaveMerged": func(tx *gorm.DB, a *stand.Account) error {
			base := *a
			a.Balance = 6
			return gormlock.SaveMerged(tx, a, &base)
		},
		"a ctx of its own": func(tx *gorm.DB, a *stand.Account) error { return tx.WithContext(context.Background()).Save(a).Error },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, a := stand.Stored(t, stand.Account{Balance: 100})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			tx := db.WithContext(ctx).Begin()
			defer tx.Rollback()
			a.Balance = 5
			stand.MustDo(t, tx.Save(&a))
			rival, done := db.Begin(), make(chan error, 1)
			pid := backend(t, rival)
			go func() {
				done <- errors.Join(rival.Exec("UPDATE accounts SET balance = 777, version = version + 1").Error, rival.Commit().Error)
			}()
			pgtest.WaitBackendBlocked(t, pid)
			cancel()
			if fails != nil {
				if err := fails(tx, &a); !errors.Is(err, context.Canceled) {
					t.Errorf("after the end of ctx: %v", err)
				}
				stand.Equal(t, "version", a.Version, 1)
			}
			if err := db.Model(&a).Update("balance", -1).Error; err != nil && !errors.Is(err, gormlock.ErrStale) {
				t.Error(err)
			}
			stand.Must(t, <-done)
			stand.Equal(t, "balance", // the write may have come before the rival's, of its version
				stand.Row[stand.Account](t, db, a.ID).Balance, 777)
		})
	}
}

// TestRowsThatFail: a query of the transaction fails while its rows come, so the server takes back what was written before.
func TestRowsThatFail(t *testing.T) {
	t.Parallel()
	text := map[string]string{
		"a function":    "SELECT 1 / (3000 - i) FROM generate_series(1, 9000) i",
		"only a SELECT": "SELECT 1 / (3000 - i) FROM (VALUES (1), (3000)) AS v (i)",
	}
	for name, text := range text {
		for how, ask := range map[string]func(tx *gorm.DB) error{
			"Scan": func(tx *gorm.DB) error { return tx.Raw(text).Scan(&[]int{}).Error },
			"Rows": func(tx *gorm.DB) error {
				rows, err := tx.Raw(text).Rows()
				if err != nil {
					return err
				}
				defer func() { _ = rows.Close() }()
				for rows.Next() {
				}
				return rows.Err()
			},
		} {
			db, a := stand.Stored(t, stand.Account{Balance: 100})
			b := stand.Made(t, db, stand.Account{Balance: 100})
			tx := db.Begin()
			stand.MustDo(t, tx.Model(&a).Update("balance", 5))
			stand.MustDo(t, tx.SavePoint("s"))
			stand.MustDo(t, tx.Model(&b).Update("balance", 5))
			if err := ask(tx); !stand.FromServer(err) {
				t.Errorf("%s, %s: %v", name, how, err)
			}
			stand.Equal(t, name+", "+how+": version before the savepoint", a.Version, 2)
			stand.Equal(t, name+", "+how+": version behind it", b.Version, 1)
			stand.MustDo(t, tx.RollbackTo("s"))
			stand.MustDo(t, tx.Model(&b).Update("balance", 6))
			stand.MustDo(t, tx.Commit())
			stand.Equal(t, name, a, stand.Row[stand.Account](t, db, a.ID))
			stand.Equal(t, name, b, stand.Row[stand.Account](t, db, b.ID))
		}
	}
}

// TestRowsThatRunOutOfTime: the ctx of one query ends while its rows come, which ends the session, and the program writes the struct elsewhere.
func TestRowsThatRunOutOfTime(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a function":    "SELECT i, repeat('x', 200) AS s FROM generate_series(1, 10000000) i",
		"only a SELECT": "SELECT a.oid AS i, repeat('x', 200) AS s FROM pg_class a, pg_class b, pg_class c",
	} {
		db, a := stand.Stored(t, stand.Account{Balance: 100})
		tx := db.Begin()
		a.Balance = 5
		stand.MustDo(t, tx.Save(&a))
		ctx, cancel := context.WithCancel(t.Context())
		rows, err := tx.WithContext(ctx).Raw(text).Rows()
		stand.Must(t, err)
		if !rows.Next() {
			t.Fatal(name, rows.Err())
		}
		cancel()
		for rows.Next() {
		}
		if err := errors.Join(rows.Err(), rows.Close()); !errors.Is(err, context.Canceled) { //nolint:sqlclosecheck // its error is looked at
			t.Errorf("%s: %v", name, err)
		}
		stand.MustDo(t, db.Exec("UPDATE accounts SET balance = 777, version = version + 1")) // it waits for the rollback
		stand.MustStale(t, db.Model(&a).Update("balance", -1).Error)
		stand.Equal(t, name, stand.Row[stand.Account](t, db, a.ID).Balance, 777)
		_ = tx.Rollback()
	}
}
