package transactions_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// V1, G31: where nobody says how a transaction ends, what was written in it counts as not read: neither a rollback nor a
// commit lets a Save pass in silence.
func TestG31_TransactionsThatNobodySees(t *testing.T) {
	t.Parallel()
	stand.Beside(t, stand.Unseen, func(t *testing.T, open func(t *testing.T) (*gorm.DB, stand.Transacting)) {
		for _, end := range []error{errUndo, nil} {
			db, within := open(t)
			stand.MustDo(t, db.Exec("DELETE FROM accounts"))
			a, ready, made := stand.Account{ID: 1}, stand.Account{ID: 2, Balance: 7}, stand.Account{ID: 3}
			stand.MustDo(t, db.Create(&a))
			stand.MustDo(t, db.Create(&ready))
			stand.MustDo(t, db.Create(&[]stand.Account{{ID: 4}, {ID: 5}}))
			var read, other, all, named, distinct, grouped, below stand.Account
			var claimed []stand.Account
			order := stand.LinedOrder{Lines: []stand.LinedLine{{Qty: 1}}}
			if err := within(func(tx *gorm.DB) (err error) {
				stand.Must(t, tx.Model(&a).Update("balance", 2).Error)
				stand.Must(t, tx.Create(&made).Error)
				stand.Must(t, tx.Create(&order).Error)
				stand.MustDo(t, tx.Exec("/* by hand */ UPDATE accounts SET version = version + 1 WHERE id = 4"))
				stand.MustDo(t, tx.First(&read, 4))
				stand.MustDo(t, tx.Select("*").First(&all, 4))
				stand.MustDo(t, tx.Select("id", "balance", "version").First(&named, 4))
				stand.MustDo(t, tx.Distinct().Take(&distinct, 4))
				stand.MustDo(t, tx.Group("id").Take(&grouped, 4))
				stand.MustDo(t, tx.Table("(SELECT * FROM accounts) AS accounts").Take(&below, 4))
				stand.MustDo(t, tx.First(&other, 5))
				other.Balance++
				stand.MustDo(t, tx.Save(&other)) // nobody had written it here
				claimed, err = gormlock.Claim[stand.Account](tx, 1, map[string]any{"balance": 8}, func(q *gorm.DB) *gorm.DB { return q.Where("balance = 7") })
				stand.Must(t, err)
				return end
			}); !errors.Is(err, end) {
				t.Fatal(err)
			}
			stand.MustDo(t, db.Exec("INSERT INTO accounts (id, balance, note, version) VALUES (3, 0, '', 1) ON CONFLICT DO NOTHING")) // a rival's
			stand.MustDo(t, db.Exec("UPDATE accounts SET version = 2, balance = 55 WHERE id IN (1, 2, 4, 5)"))
			for _, mine := range []*stand.Account{&a, &made, &claimed[0], &read, &all, &named, &distinct, &grouped, &below, &other} {
				mine.Balance = 1
				if err := db.Save(mine).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
					t.Errorf("end %v: %+v was saved: %v", end, *mine, err)
				}
			}
			stand.Equal(t, "order", [2]int64{order.Version, order.Lines[0].Version}, [2]int64{stand.Unread, stand.Unread})
		}
	})
}

// Reading a row again does not help there: the error names what does.
func TestG31_ErrorNamesTheCure(t *testing.T) {
	t.Parallel()
	stand.Beside(t, stand.Unseen, func(t *testing.T, open func(t *testing.T) (*gorm.DB, stand.Transacting)) {
		db, within := open(t)
		stand.MustDo(t, db.Create(&stand.Account{ID: 1}))
		var again stand.Account
		err := within(func(tx *gorm.DB) error {
			stand.MustDo(t, tx.Model(&stand.Account{ID: 1, Version: 1}).Update("balance", 2))
			stand.MustDo(t, tx.First(&again, 1))
			return tx.Save(&again).Error
		})
		if !errors.Is(err, gormlock.ErrVersionMissing) || !strings.Contains(err.Error(), "begin it with gormlock.Transaction") {
			t.Error(err)
		}
		err = db.Save(&again).Error
		if !errors.Is(err, gormlock.ErrVersionMissing) || !strings.Contains(err.Error(), "read it first") {
			t.Error(err)
		}
	})
}

// G31: a statement's own transaction is seen on every pool: its structs, and their children, are what their rows are.
func TestG31_OwnTransactions(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) *gorm.DB{
		"PlainTransactions": func(t *testing.T) *gorm.DB {
			t.Helper()
			return stand.OpenLined(t, gormlock.New(gormlock.PlainTransactions()))
		},
		"a pool around that of gormlock": func(t *testing.T) *gorm.DB {
			t.Helper()
			db := stand.OpenLined(t, gormlock.New())
			db.ConnPool = &stand.WrappedPool{ConnPool: db.ConnPool}
			db.Statement.ConnPool = db.ConnPool
			return db
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			order := stand.LinedOrder{Lines: []stand.LinedLine{{Qty: 1}}}
			stand.Must(t, db.Create(&order).Error)
			stand.Equal(t, "versions", [2]int64{order.Version, order.Lines[0].Version}, [2]int64{1, 1})
			order.Lines[0].Qty = 2
			stand.Must(t, db.Save(&order.Lines[0]).Error)

			failing := stand.LinedOrder{Title: "x", Lines: []stand.LinedLine{{Qty: 1}, {ID: order.Lines[0].ID, Qty: 9, Version: 1}}}
			if err := db.Session(&gorm.Session{FullSaveAssociations: true}).Create(&failing).Error; !errors.Is(err, gormlock.ErrStale) {
				t.Fatal(err)
			}
			stand.Equal(t, "rolled back", [3]int64{failing.ID, failing.Lines[0].ID, failing.Lines[0].Version}, [3]int64{})

			// gormlock.Transaction hears of GORM's savepoints there.
			stand.Must(t, gormlock.Transaction(db, func(tx *gorm.DB) error {
				_ = tx.Transaction(func(tx *gorm.DB) error {
					stand.Must(t, tx.Model(&order).Update("title", "inner").Error)
					return errUndo
				})
				stand.Equal(t, "after the savepoint", order.Version, 1)
				stand.MustDo(t, tx.Exec("/* x */ SAVEPOINT a"))
				stand.Must(t, tx.Model(&order).Update("title", "inner").Error)
				var none []string
				stand.Must(t, tx.Raw("ROLLBACK TO a -- y").Scan(&none).Error)
				stand.Equal(t, "after the savepoint", order.Version, 1)
				return tx.Model(&order).Update("title", "outer").Error
			}))
			stand.Equal(t, "committed", order.Version, 2)
		})
	}
}
