package rollbacks_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// transfer is a form of two rows.
type transfer struct {
	From stand.Account `gorm:"embedded;embeddedPrefix:from_"`
	To   stand.Account `gorm:"embedded;embeddedPrefix:to_"`
}

// deepTransfer is one whose second row lies deeper, behind a pointer.
type deepTransfer struct {
	From stand.Account `gorm:"embedded;embeddedPrefix:from_"`
	Deep struct {
		To *stand.Account `gorm:"embedded;embeddedPrefix:to_"`
	} `gorm:"embedded"`
}

// besideOne is a form of a row with a version by its name, beside another row with a version by its tag.
type besideOne struct {
	ID      int64
	Balance int64
	Version int64
	To      stand.Account `gorm:"embedded;embeddedPrefix:to_"`
}

type namedBesideOne besideOne

// TableName makes it a form of the very table.
func (namedBesideOne) TableName() string { return "accounts" }

const twoAccounts = "SELECT a.id, a.balance, a.version, a.id AS from_id, a.balance AS from_balance, a.version AS from_version, " +
	"b.id AS to_id, b.balance AS to_balance, b.version AS to_version FROM accounts a, accounts b WHERE a.id = 1 AND b.id = 2"

// After a rollback, a form of two rows holds the version of neither.
func TestRollback_ofFormsWithTwoVersions(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	scan := func(tx *gorm.DB, into any) error { return tx.Raw(twoAccounts).Scan(into).Error }
	find := func(tx *gorm.DB, into any) error { return tx.Raw(twoAccounts).Find(into).Error }
	var pair transfer
	var pairs []transfer
	var deep deepTransfer
	var one, found besideOne
	var named namedBesideOne
	save := func(a *stand.Account) func() error { return func() error { return db.Save(a).Error } }
	update := func(version *int64) func() error {
		return func() error {
			return db.Model(&stand.Account{ID: 1}).Clauses(gormlock.ExpectVersion(*version)).Update("balance", 7).Error
		}
	}
	for name, c := range map[string]struct {
		read  func(tx *gorm.DB, into any) error
		into  any
		write []func() error
	}{
		"a struct":                       {scan, &pair, []func() error{save(&pair.From), save(&pair.To)}},
		"a list":                         {scan, &pairs, []func() error{func() error { return db.Save(&pairs[0].From).Error }, func() error { return db.Save(&pairs[0].To).Error }}},
		"behind a pointer":               {scan, &deep, []func() error{save(&deep.From), func() error { return db.Save(deep.Deep.To).Error }}},
		"without a tag":                  {scan, &one, []func() error{update(&one.Version), save(&one.To)}},
		"without a tag, Find":            {find, &found, []func() error{update(&found.Version), save(&found.To)}},
		"without a tag, of its own name": {find, &named, []func() error{update(&named.Version), save(&named.To)}},
	} {
		t.Run(name, func(t *testing.T) {
			stand.MustDo(t, db.Exec("TRUNCATE accounts"))
			stand.MustDo(t, db.Create(&[]stand.Account{{ID: 1}, {ID: 2}}))
			if err := db.Transaction(func(tx *gorm.DB) error {
				stand.MustDo(t, tx.Model(&stand.Account{}).Where("true").Update("balance", 7))
				return errors.Join(c.read(tx, c.into), errUndo)
			}); err.Error() != errUndo.Error() {
				t.Fatal(err)
			}
			stand.MustDo(t, db.Model(&stand.Account{}).Where("true").Update("balance", 55)) // the rival
			for i, write := range c.write {
				if err := write(); !errors.Is(err, gormlock.ErrVersionMissing) && !errors.Is(err, gormlock.ErrStale) {
					t.Errorf("version %d of %+v was taken for read: %v", i, c.into, err)
				}
			}
		})
	}
}
