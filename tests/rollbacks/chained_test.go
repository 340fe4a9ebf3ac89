package rollbacks_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// afterScan is how a chain goes on that has been scanned.
var afterScan = map[string]func(t *testing.T, q *gorm.DB){
	"Count": func(t *testing.T, q *gorm.DB) {
		t.Helper()
		var n int64
		stand.MustDo(t, q.Count(&n))
	},
	"Find": func(t *testing.T, q *gorm.DB) {
		t.Helper()
		stand.MustDo(t, q.Find(&[]stand.Account{}))
	},
	"Scan": func(t *testing.T, q *gorm.DB) {
		t.Helper()
		stand.MustDo(t, q.Scan(&[]stand.Account{}))
	},
	"Rows": func(t *testing.T, q *gorm.DB) {
		t.Helper()
		rows, err := q.Rows()
		stand.Must(t, err)
		for rows.Next() {
			stand.Must(t, q.ScanRows(rows, &stand.Account{}))
		}
		stand.Must(t, errors.Join(rows.Err(), rows.Close()))
	},
	"Row": func(t *testing.T, q *gorm.DB) {
		t.Helper()
		var n int64
		stand.Must(t, q.Select("count(*)").Row().Scan(&n))
	},
	"nothing": func(*testing.T, *gorm.DB) {},
}

// scannedBy are chains whose rows Scan reads.
var scannedBy = map[string]func(tx *gorm.DB) *gorm.DB{
	"Model": func(tx *gorm.DB) *gorm.DB { return tx.Model(&stand.Account{}).Where("id < ?", 5) },
	"Table": func(tx *gorm.DB) *gorm.DB { return tx.Table("accounts").Where("id < ?", 5) },
	"Raw":   func(tx *gorm.DB) *gorm.DB { return tx.Raw("SELECT * FROM accounts WHERE id < 5") },
}

// What Scan has read counts as not read after a rollback, whatever the chain went on to, and where the list went.
func TestScan_chainThatGoesOn(t *testing.T) {
	t.Parallel()
	for pools, plugin := range map[string]*gormlock.Plugin{"": gormlock.New(), "plain, ": gormlock.New(gormlock.PlainTransactions())} {
		db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(plugin))
		stand.Must(t, db.AutoMigrate(&stand.Account{}))
		for chain, of := range scannedBy {
			for next, goOn := range afterScan {
				t.Run(pools+chain+", Scan, "+next, func(t *testing.T) {
					stand.MustDo(t, db.Exec("TRUNCATE accounts"))
					stand.MustDo(t, db.Create(&stand.Account{ID: 1}))
					var list, held []stand.Account
					if err := gormlock.Transaction(db, func(tx *gorm.DB) error {
						stand.MustDo(t, tx.Model(&stand.Account{}).Where("id = 1").Update("balance", 7))
						q := of(tx)
						stand.MustDo(t, q.Scan(&list))
						held, list = list, nil
						goOn(t, q)
						return errUndo
					}); !errors.Is(err, errUndo) {
						t.Fatal(err)
					}
					stand.MustDo(t, db.Model(&stand.Account{}).Where("id = 1").Update("balance", 55)) // the rival
					if err := db.Save(&held[0]).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
						t.Fatalf("%+v was saved over the rival's: %v", held[0], err)
					}
				})
			}
		}
	}
}

// A rollback leaves alone what Scan has not filled.
func TestScan_ofNoRows(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	stand.MustDo(t, db.Create(&stand.Account{ID: 1}))
	n := int64(-7)
	kept := stand.Account{ID: 1, Version: 3}
	if err := db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Exec("UPDATE accounts SET version = version + 1"))
		q := tx.Table("accounts").Where("id > ?", 5).Select("version")
		stand.MustDo(t, q.Scan(&[]int64{}))
		stand.MustDo(t, q.Count(&n))
		stand.MustDo(t, tx.Model(&kept).Where("id > ?", 5).Scan(&kept))
		rows, err := tx.Table("accounts").Select("version").Rows()
		stand.Must(t, err)
		stand.Must(t, errors.Join(rows.Err(), rows.Close())) //nolint:sqlclosecheck // its error is looked at
		return errUndo
	}); !errors.Is(err, errUndo) {
		t.Fatal(err)
	}
	if n != 0 || kept.Version != 3 {
		t.Fatalf("count %d, %+v", n, kept)
	}
}
