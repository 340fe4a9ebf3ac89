package rows_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// purse has a key of two columns, one of which may be zero.
type purse struct {
	Bank      int64  `gorm:"primaryKey;autoIncrement:false"`
	ID        string `gorm:"primaryKey"`
	Balance   int64
	Note      *string
	DeletedAt gorm.DeletedAt
	Coins     []coin `gorm:"foreignKey:Bank,Purse;references:Bank,ID"`

	Found string `gorm:"-"`
}

func (a *purse) AfterFind(*gorm.DB) error {
	a.Found = a.ID
	return nil
}

type coin struct {
	ID    int64
	Bank  int64
	Purse string
}

// purses are a, b and c of bank 0, with a note and 100 each, and a of bank 1 with 1.
func purses(t *testing.T, opts ...pgtest.Option) *gorm.DB {
	t.Helper()
	db := stand.Open(t, opts...)
	if err := db.AutoMigrate(&purse{}, &coin{}); err != nil {
		t.Fatal(err)
	}
	note := "note"
	stand.MustDo(t, db.Create(&[]purse{
		{ID: "a", Balance: 100, Note: &note, Coins: []coin{{ID: 1}}},
		{ID: "b", Balance: 100, Note: &note},
		{ID: "c", Balance: 100, Note: &note},
		{Bank: 1, ID: "a", Balance: 1, Note: &note},
	}))
	return db
}

// onPurses runs a test on purses in each mode, beside a rival.
func onPurses(t *testing.T, test func(t *testing.T, db *gorm.DB, other stand.RowRival)) {
	t.Helper()
	stand.EachMode(t, func(t *testing.T, opts ...pgtest.Option) {
		db := purses(t, opts...)
		test(t, db, stand.NewRowRival(t))
	})
}

func lockedPurses(r stand.RowRival) []string { return r.LockedKeys("purses", "bank || id") }

func TestLockRow(t *testing.T) {
	t.Parallel()
	onPurses(t, lockRowConformance)
}

func lockRowConformance(t *testing.T, db *gorm.DB, other stand.RowRival) {
	var loaded purse
	stand.MustDo(t, db.Preload("Coins").Take(&loaded, "bank = 0 and id = 'a'"))
	stand.MustDo(t, db.Exec("update purses set balance = 90, note = null where bank = 0 and id = 'a'"))

	t.Run("reads the row again and locks it alone", func(t *testing.T) { // R28
		stand.InTx(t, db, func(tx *gorm.DB) {
			row := loaded
			row.Balance, row.Found = 7, ""
			if err := gormlock.LockRow(tx, &row); err != nil {
				t.Fatal(err)
			}
			if row.Balance != 90 || row.Note != nil || row.Found != "a" {
				t.Fatalf("read %+v", row)
			}
			if len(row.Coins) != 1 {
				t.Fatal("the association is gone")
			}
			if locked := lockedPurses(other); !slices.Equal(locked, []string{"0a"}) {
				t.Fatalf("locked are %v", locked)
			}
		})
	})
	t.Run("locks FOR UPDATE, or as told", func(t *testing.T) {
		for strength, want := range map[gormlock.Strength]int{gormlock.ForUpdate: 1, gormlock.ForNoKeyUpdate: 0} {
			stand.InTx(t, db, func(tx *gorm.DB) {
				row := loaded
				var opts []gormlock.RowLockOption
				if strength != gormlock.ForUpdate {
					opts = append(opts, strength)
				}
				if err := gormlock.LockRow(tx, &row, opts...); err != nil {
					t.Fatal(err)
				}
				if locked := stand.LockedRows[string](other, "purses", "id", "FOR KEY SHARE"); len(locked) != want {
					t.Fatalf("%v: locked against FOR KEY SHARE are %v", strength, locked)
				}
			})
		}
	})
	t.Run("Try of a free row is one statement", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			tx, recorder := stand.Recorded(tx)
			row := loaded
			if err := gormlock.LockRow(tx, &row, gormlock.Try()); err != nil || row.Balance != 90 {
				t.Fatal(row, err)
			}
			if seen := recorder.Seen(); len(seen) != 1 {
				t.Fatalf("sent %q", seen)
			}
		})
	})
	t.Run("a locked row is ErrNotAcquired or ErrLockTimeout, and the struct as it was", func(t *testing.T) {
		release := other.Hold("select from purses where id = 'a' for update")
		defer release()
		stand.InTx(t, db, func(tx *gorm.DB) {
			for _, c := range []struct {
				want error
				text string
				opts []gormlock.RowLockOption
			}{
				{gormlock.ErrNotAcquired, "gormlock: lock purses bank=0 id=a: held by another session", []gormlock.RowLockOption{gormlock.Try()}},
				{gormlock.ErrNotAcquired, "gormlock: lock purses bank=0 id=a: held by another session", []gormlock.RowLockOption{gormlock.Try(), gormlock.Preloaded()}},
				{gormlock.ErrLockTimeout, "gormlock: lock purses bank=0 id=a: lock wait timed out, after 30ms", []gormlock.RowLockOption{gormlock.Timeout(shortWait)}},
			} {
				row := loaded
				row.Balance = 7
				err := gormlock.LockRow(tx, &row, c.opts...)
				if !errors.Is(err, c.want) || err.Error() != c.text || row.Balance != 7 || row.Note == nil {
					t.Fatalf("%v, %+v", err, row)
				}
			}
			stand.MustDo(t, tx.Find(&[]purse{}))
		})
	})
	t.Run("a row that is gone is ErrRecordNotFound, and the struct as it was", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.MustDo(t, tx.Delete(&purse{}, "id = 'b'"))
			for _, opts := range [][]gormlock.RowLockOption{nil, {gormlock.Try()}} {
				row := purse{ID: "b", Balance: 7}
				err := gormlock.LockRow(tx, &row, opts...)
				if !errors.Is(err, gorm.ErrRecordNotFound) || !strings.Contains(err.Error(), "purses bank=0 id=b") || row.Balance != 7 {
					t.Fatal(row, err)
				}
				if err := gormlock.LockRow(tx.Unscoped(), &row, opts...); err != nil || row.Balance != 100 {
					t.Fatal(row, err)
				}
			}
		})
	})
	t.Run("Preload of tx is read, and locked if told", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			row := purse{ID: "a"}
			if err := gormlock.LockRow(tx.Preload("Coins"), &row); err != nil || len(row.Coins) != 1 {
				t.Fatal(row, err)
			}
			if locked := other.Locked("coins"); len(locked) > 0 {
				t.Fatalf("locked are %v", locked)
			}
			if err := gormlock.LockRow(tx.Preload("Coins"), &row, gormlock.Preloaded(), gormlock.Try()); err != nil || len(row.Coins) != 1 {
				t.Fatal(row, err)
			}
			if locked := other.Locked("coins"); len(locked) != 1 {
				t.Fatalf("locked are %v", locked)
			}
		})
	})
}

// TestLockRowMisuse: what cannot be done is an error and executes nothing.
func TestLockRowMisuse(t *testing.T) {
	t.Parallel()
	db := purses(t)
	loaded := purse{ID: "a"}
	stand.InTx(t, db, func(tx *gorm.DB) {
		tx, recorder := stand.Recorded(tx)
		for name, err := range map[string]error{
			"a struct":            gormlock.LockRow(tx, loaded),
			"nil":                 gormlock.LockRow(tx, nil),
			"a nil pointer":       gormlock.LockRow(tx, (*purse)(nil)),
			"a slice":             gormlock.LockRow(tx, &[]purse{loaded}),
			"no key":              gormlock.LockRow(tx, &purse{}),
			"Skip":                gormlock.LockRow(tx, &loaded, gormlock.Skip()),
			"two strengths":       gormlock.LockRow(tx, &loaded, gormlock.ForShare, gormlock.ForUpdate),
			"Try and Timeout":     gormlock.LockRow(tx, &loaded, gormlock.Try(), gormlock.Timeout(time.Second)),
			"nil db":              gormlock.LockRow(nil, &loaded),
			"no transaction":      gormlock.LockRow(db, &loaded),
			"rows of a struct":    gormlock.LockRows(tx, &loaded),
			"rows of a slice":     gormlock.LockRows(tx, []purse{loaded}),
			"rows of nil":         gormlock.LockRows(tx, nil),
			"rows without key":    gormlock.LockRows(tx, &[]purse{loaded, {}}),
			"a nil row":           gormlock.LockRows(tx, &[]*purse{&loaded, nil}),
			"rows with Skip":      gormlock.LockRows(tx, &[]purse{loaded}, gormlock.Skip()),
			"rows outside of one": gormlock.LockRows(db, &[]purse{loaded}),
		} {
			if err == nil || stand.FromServer(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if seen := recorder.Seen(); len(seen) > 0 {
			t.Fatalf("sent %q", seen)
		}
		if err := gormlock.LockRow(db, &loaded); !errors.Is(err, gormlock.ErrNoTransaction) {
			t.Error(err)
		}
		if err := gormlock.LockRow(tx, &purse{}); !errors.Is(err, gorm.ErrPrimaryKeyRequired) {
			t.Error(err)
		}
	})
	plain := pgtest.Open(t, pgtest.Schema())
	if err := gormlock.LockRow(plain, &loaded); !errors.Is(err, gormlock.ErrNotInstalled) {
		t.Error(err)
	}
	if err := gormlock.LockRows(plain, &[]purse{loaded}); !errors.Is(err, gormlock.ErrNotInstalled) {
		t.Error(err)
	}
}
