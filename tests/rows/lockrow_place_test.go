package rows_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// vault has all that is not in its own columns, and a hook that keeps pointers to it.
type vault struct {
	ID      int64
	Balance int64
	OwnerID *int64
	Owner   *vaultOwner
	Coins   []vaultCoin
	*VaultPlace

	self *vault
}

func (*vault) TableName() string { return "Vaults" }

// VaultPlace is exported for it is embedded behind a pointer.
type VaultPlace struct{ City string }

type vaultOwner struct{ ID int64 }

type vaultCoin struct {
	ID      int64
	VaultID int64
	in      *vault
}

func (v *vault) AfterFind(*gorm.DB) error {
	v.self = v
	for i := range v.Coins {
		v.Coins[i].in = v
	}
	return nil
}

func vaults(t *testing.T) *gorm.DB {
	t.Helper()
	db := stand.Versioned(t, []any{&vaultOwner{}, &vault{}, &vaultCoin{}, &turnstile{}})
	stand.MustDo(t, db.Create(&vault{ID: 1, Balance: 5, Owner: &vaultOwner{ID: 1}, Coins: []vaultCoin{{ID: 1}}, VaultPlace: &VaultPlace{City: "Riga"}}))
	return db
}

// turnstile is a struct that others look at while its row is waited for.
type turnstile struct {
	ID       int64
	Count    int64
	Standing int64 `gorm:"->;-:migration"` // of a query that computes it

	mu   sync.Mutex
	hits atomic.Int64
}

// TestLockRowReadsInPlace: the struct is the caller's, and what is no column of the row is not touched.
func TestLockRowReadsInPlace(t *testing.T) {
	t.Parallel()
	db := vaults(t)
	stand.MustDo(t, db.Omit("standing").Create(&turnstile{ID: 1, Count: 5}))
	var s turnstile
	stand.MustDo(t, db.Select("*, 7 as standing").Take(&s, 1))
	stand.MustDo(t, db.Model(&turnstile{}).Where("id = 1").Update("count", 6))
	release := stand.NewRowRival(t).Hold("select * from turnstiles for update")
	waits := make(chan struct{})
	s.mu.Lock()
	go func() { // while LockRow waits
		s.hits.Add(1)
		release()
		s.mu.Lock()
		defer s.mu.Unlock()
		close(waits)
	}()
	stand.InTx(t, db, func(tx *gorm.DB) { stand.Must(t, gormlock.LockRow(tx, &s)) })
	s.mu.Unlock()
	<-waits
	stand.Equal(t, "count", s.Count, 6)
	stand.Equal(t, "standing", s.Standing, 7)
	stand.Equal(t, "hits", s.hits.Load(), 1)

	var v vault
	stand.MustDo(t, db.Preload("Coins").Take(&v, 1))
	place := v.VaultPlace
	stand.MustDo(t, db.Exec(`update "Vaults" set city = 'Oslo'`))
	stand.InTx(t, db, func(tx *gorm.DB) { stand.Must(t, gormlock.LockRow(tx.Preload("Coins"), &v)) })
	stand.Equal(t, "city", place.City, "Oslo")
	if v.self != &v || v.Coins[0].in != &v {
		t.Error("the hook was given another struct")
	}
}

// doubled has a column that the server works out.
type doubled struct {
	ID    int64
	N     *int64
	Twice int64 `gorm:"->;type:bigint GENERATED ALWAYS AS (n * 2) STORED"`
}

// TestLockRowReadsGeneratedColumns, those too that have become NULL.
func TestLockRowReadsGeneratedColumns(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&doubled{}})
	n := int64(4)
	d := doubled{ID: 1, N: &n}
	stand.MustDo(t, db.Create(&d))
	stand.MustDo(t, db.Take(&d))
	stand.Equal(t, "before", d.Twice, 8)
	stand.MustDo(t, db.Exec("update doubleds set n = null"))
	stand.InTx(t, db, func(tx *gorm.DB) { stand.Must(t, gormlock.LockRow(tx, &d)) })
	stand.Equal(t, "now", d.Twice, 0)
}

// TestLockRowPutsBack what the struct held, where it fails behind the read.
func TestLockRowPutsBack(t *testing.T) {
	t.Parallel()
	db := vaults(t)
	stand.MustDo(t, db.Exec(`update "Vaults" set balance = 6`))
	coins := []vaultCoin{{ID: 9}}
	v := vault{ID: 1, Balance: 5, Coins: coins, Owner: &vaultOwner{ID: 8}}
	stand.InTx(t, db, func(tx *gorm.DB) {
		if err := gormlock.LockRow(tx.Joins("Owner").Preload("Coins").Preload("Nothing"), &v); err == nil {
			t.Error("an association that is not there is loaded")
		}
	})
	stand.Equal(t, "id", v.ID, 1)
	stand.Equal(t, "balance", v.Balance, 5)
	stand.Equal(t, "owner", v.Owner.ID, 8)
	stand.Equal(t, "coin", v.Coins[0].ID, 9)
	if v.VaultPlace != nil {
		t.Error("what was nil is", v.VaultPlace)
	}
}

// TestLockRowReadsWholeRows: what leaves no column out has its place on tx.
func TestLockRowReadsWholeRows(t *testing.T) {
	t.Parallel()
	db := vaults(t)
	stand.InTx(t, db, func(tx *gorm.DB) {
		again := tx.Session(&gorm.Session{QueryFields: true}).Joins("Owner")
		stand.MustDo(t, again.Find(&[]vault{}))
		for name, q := range map[string]*gorm.DB{
			"Omit of associations": tx.Omit(clause.Associations), "Omit of one": tx.Omit("Coins", "Owner"), "Select of all": tx.Select("*"), "a chain that has run": again,
		} {
			v := vault{ID: 1}
			if err := gormlock.LockRow(q, &v); err != nil || v.Balance != 5 {
				t.Errorf("%s: %v, %d", name, err, v.Balance)
			}
		}
		for name, q := range map[string]*gorm.DB{
			"Omit": tx.Omit("Coins", "balance"), "Select": tx.Select("id"), "a clause": tx.Clauses(clause.Select{Columns: []clause.Column{{Name: "id"}}}),
		} {
			if err := gormlock.LockRow(q, &vault{ID: 1}); err == nil {
				t.Errorf("%s: a part of the row was read", name)
			}
		}
	})
}

// TestLockRowWithTryAsksAgain: whether a row that was skipped is there is asked whatever tx joins, and an error of the
// question is not an answer.
func TestLockRowWithTryAsksAgain(t *testing.T) {
	t.Parallel()
	db := vaults(t)
	failed := errors.New("the question")
	stand.Must(t, db.Callback().Query().Before("gorm:query").Register("fail", func(q *gorm.DB) {
		if _, fails := q.Get("fail"); fails && strings.Contains(strings.Join(q.Statement.Selects, ""), "row_security_active") {
			_ = q.AddError(failed)
		}
	}))
	release := stand.NewRowRival(t).Hold(`select * from "Vaults" for update`)
	defer release()
	stand.InTx(t, db, func(tx *gorm.DB) {
		for name, q := range map[string]*gorm.DB{"plain": tx, "Joins": tx.Joins("Owner"), "Preload": tx.Preload("Owner")} {
			if err := gormlock.LockRow(q, &vault{ID: 1}, gormlock.Try()); !errors.Is(err, gormlock.ErrNotAcquired) {
				t.Errorf("%s: %v", name, err)
			}
		}
		err := gormlock.LockRow(tx.Set("fail", true), &vault{ID: 1}, gormlock.Try())
		if !errors.Is(err, failed) || errors.Is(err, gorm.ErrRecordNotFound) {
			t.Error(err)
		}
	})
}

// TestRowLockOfATableInCapitals is of that table, wherever GORM writes its name.
func TestRowLockOfATableInCapitals(t *testing.T) {
	t.Parallel()
	db := vaults(t)
	var place string
	stand.MustDo(t, db.Raw("select current_schema").Scan(&place))
	for _, table := range []string{"Vaults", place + ".Vaults"} {
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.MustDo(t, tx.Table(table).Joins("Owner").Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Find(&[]vault{}))
			stand.Equal(t, table, len(stand.NewRowRival(t).Locked(`"Vaults"`)), 1)
		})
	}
}
