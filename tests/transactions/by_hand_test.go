package transactions_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// TestBeginByHand: the program sends BEGIN on one connection. No object stands for the transaction, so structs count as not read.
// Where there is none they stay fresh.
func TestBeginByHand(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]pgtest.Option{{pgtest.SkipDefaultTransaction()}, {pgtest.SkipDefaultTransaction(), pgtest.PrepareStmt()}, {pgtest.SkipDefaultTransaction(), pgtest.SimpleProtocol()}, nil} {
		db := stand.Versioned(t, []any{&stand.Account{}}, opts...)
		for _, c := range []struct{ begin, end string }{{"BEGIN", "ROLLBACK"}, {"BEGIN", "COMMIT"}, {"/* x */ START TRANSACTION", "ABORT"}, {"SELECT 1", "SELECT 1"}} {
			stand.MustDo(t, db.Exec("TRUNCATE accounts"))
			a, made := stand.Account{ID: 1, Balance: 1}, stand.Account{ID: 2}
			all := []stand.Account{{ID: 3}, {ID: 4}}
			stand.MustDo(t, db.Create(&a))
			stand.MustDo(t, db.Create(&all))
			var read stand.Account
			stand.Must(t, db.Connection(func(tx *gorm.DB) error {
				stand.MustDo(t, tx.Exec(c.begin))
				a.Balance = 2
				stand.MustDo(t, tx.Save(&a))
				stand.MustDo(t, tx.Create(&made))
				stand.MustDo(t, tx.First(&read, 1))
				stand.MustDo(t, tx.Save(&all))
				stand.MustDo(t, tx.Exec(c.end))
				return nil
			}))
			var now []stand.Account
			stand.MustDo(t, db.Find(&now))
			rows := map[int64]int64{}
			for _, row := range now {
				rows[row.ID] = row.Version
			}
			for _, held := range []*stand.Account{&a, &made, &read, &all[0], &all[1]} {
				if held.Version > rows[held.ID] {
					t.Errorf("%d options, %s … %s: %+v, and the row is at %d", len(opts), c.begin, c.end, *held, rows[held.ID])
				}
			}
			if c.begin == "SELECT 1" {
				stand.MustDo(t, db.Save(&a))

			} else if err := db.Save(&a).Error; len(opts) > 0 && !errors.Is(err, gormlock.ErrVersionMissing) {
				t.Errorf("%d options, %s … %s: Save: %v", len(opts), c.begin, c.end, err)
			}
		}
	}
}

// TestBeginByHand_onThePool: with one connection in the pool, too. pgx does not use a connection again that has a transaction.
func TestBeginByHand_onThePool(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}}, pgtest.SkipDefaultTransaction(), pgtest.MaxConns(1))
	a := stand.Account{ID: 1, Balance: 1}
	stand.MustDo(t, db.Create(&a))
	stand.MustDo(t, db.Exec("BEGIN"))
	a.Balance = 2
	_ = db.Save(&a).Error
	stand.MustDo(t, db.Exec("ROLLBACK"))
	if row := stand.Row[stand.Account](t, db, 1); a.Version > row.Version {
		t.Errorf("%+v, and the row is %+v", a, row)
	}
}
