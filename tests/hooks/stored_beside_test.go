package hooks_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	// billed has a bill that is saved with it.
	billed struct {
		ID     int64
		Amount int64
		BillID *int64
		Bill   *bill
	}
	owner struct {
		ID    int64
		Lines []*line
	}
	line struct {
		ID      int64
		OwnerID int64
		acting  `gorm:"-"`
	}
	found struct {
		ID     int64
		Amount int64
	}
	finding struct{}
)

// AfterFind does what the context of the read says.
func (*found) AfterFind(tx *gorm.DB) error {
	do, _ := tx.Statement.Context.Value(finding{}).(func(tx *gorm.DB) error)
	return act(do, tx)
}

// A struct whose association is refused takes with it what was stored for it, and nothing else.
func TestHook_ofAnAssociation(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, db *gorm.DB, way string, stale *bill) {
		full := func(tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{FullSaveAssociations: true}) }
		refusing := func(b *bill) *line {
			return &line{acting: acting{Before: func(tx *gorm.DB) error { return as(tx.Model(b).Update("total", 9).Error) }}}
		}
		for name, c := range map[string]struct {
			write  func(tx *gorm.DB, b *bill) error
			stores bool
		}{
			"what it belongs to": {func(tx *gorm.DB, b *bill) error { return full(tx).Create(&billed{Amount: 8, Bill: b}).Error }, false},
			"what some belong to": {func(tx *gorm.DB, b *bill) error {
				return full(tx).Create([]*billed{{Amount: 8, Bill: b}}).Error
			}, false},
			"what some belong to, and another": {func(tx *gorm.DB, b *bill) error {
				return full(tx).Create([]*billed{{Amount: 8, Bill: &bill{Total: 5}}, {Amount: 8, Bill: b}}).Error
			}, true},
			"a line of a new owner": {func(tx *gorm.DB, b *bill) error { return tx.Create(&owner{Lines: []*line{refusing(b)}}).Error }, true},
			"Append": {func(tx *gorm.DB, b *bill) error {
				return tx.Model(&owner{ID: 500}).Association("Lines").Append(refusing(b))
			}, false},
			"Append to several owners": {func(tx *gorm.DB, b *bill) error {
				return tx.Model([]*owner{{ID: 500}, {ID: 501}}).Association("Lines").Append(&line{}, refusing(b))
			}, true},
			"Replace of several owners": {func(tx *gorm.DB, b *bill) error {
				return tx.Model([]*owner{{ID: 500}, {ID: 501}}).Association("Lines").Replace(&line{}, refusing(b))
			}, true},
		} {
			reset(t, db)
			b := *stale
			dropped, second, commit := inTransaction(t, db, way, func(tx *gorm.DB) error { return c.write(tx, &b) })
			left, around := count(t, db)
			doomed := commit != nil
			if guessed := name == "Append" && (way == "plain transactions" || way == "one connection"); guessed {
				doomed = false // nobody counts what the owner before has stored
				around = 2
			}
			if dropped == nil || c.stores != doomed || left != 0 || c.stores != (around == 0) {
				t.Errorf("%s: %v, then %v, the commit %v; %d left, %d of 2", name, dropped, second, commit, left, around)
			}
		}
	})
}

// What AfterFind has stored before gormlock refused something in it is not committed, if the read fails. What it handles, it keeps.
func TestHook_afterFind(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, db *gorm.DB, way string, stale *bill) {
		for name, c := range map[string]struct {
			read   func(tx *gorm.DB) error
			writes bool
		}{
			"Find":          {func(tx *gorm.DB) error { return tx.Find(&[]found{}).Error }, false},
			"First":         {func(tx *gorm.DB) error { return tx.First(&found{}, 500).Error }, false},
			"gorm.G":        {func(tx *gorm.DB) error { _, err := gorm.G[found](tx).Find(tx.Statement.Context); return err }, false},
			"FirstOrCreate": {func(tx *gorm.DB) error { return tx.FirstOrCreate(&found{ID: 500}).Error }, false},
			"LockRow":       {func(tx *gorm.DB) error { return gormlock.LockRow(tx, &found{ID: 500}) }, false},
			"LockRows":      {func(tx *gorm.DB) error { return gormlock.LockRows(tx, &[]found{{ID: 500}}) }, false},
			"Claim": {func(tx *gorm.DB) error {
				_, err := gormlock.Claim[found](tx, 1, map[string]any{"amount": 8})
				return err
			}, true},
		} {
			for what, handles := range map[string]bool{"refused": false, "handled": true} {
				for _, stores := range []bool{true, false} {
					reset(t, db)
					b := *stale
					hook := func(tx *gorm.DB) error {
						tx = tx.Session(&gorm.Session{NewDB: true})
						if stores {
							stand.Must(t, tx.Create(&audit{}).Error)
						}
						err := tx.Model(&b).Update("total", 9).Error
						if !errors.Is(err, gormlock.ErrStale) {
							t.Errorf("%s: not stale: %v", name, err)
						}
						if handles {
							return nil
						}
						return as(err)
					}
					dropped, second, commit := inTransaction(t, db, way, func(tx *gorm.DB) error {
						return c.read(tx.WithContext(context.WithValue(tx.Statement.Context, finding{}, hook)))
					})
					left, around := count(t, db)
					doomed := !handles && (stores || c.writes)
					if (dropped == nil) != handles || doomed != (commit != nil) || doomed != (around == 0) || (left > 0) != (handles && (stores || c.writes)) {
						t.Errorf("%s, %s, stores %v: %v, then %v, the commit %v; %d left, %d of 2", name, what, stores, dropped, second, commit, left, around)
					}
				}
			}
		}
	})
}
