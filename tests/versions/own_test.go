package versions_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type keptAccount struct {
	ID        int64
	Balance   int64
	Note      string
	Version   int64 `gorm:"not null;default:1" gormlock:"version"`
	DeletedAt gorm.DeletedAt
}

// A conflict is the transaction's own if it moved the row from the version expected itself. No other attempt cures that. If a rival
// moved the row before, one does, whatever the transaction did to the row afterwards.
func TestStale_whoseItIs(t *testing.T) {
	t.Parallel()
	type write func(tx *gorm.DB, a *keptAccount) error
	rival := func(tx *gorm.DB, a *keptAccount) error {
		return tx.Exec("UPDATE kept_accounts SET balance = balance + 1, version = version + 1 WHERE id = ?", a.ID).Error
	}
	byAnother := func(tx *gorm.DB, a *keptAccount) error {
		other := *a
		return tx.Model(&other).Update("balance", 5).Error
	}
	byOneReadNow := func(tx *gorm.DB, a *keptAccount) error {
		other := stand.Row[keptAccount](t, tx, a.ID)
		return tx.Model(&other).Update("balance", 6).Error
	}
	update := func(tx *gorm.DB, a *keptAccount) error { return tx.Model(a).Update("balance", 7).Error }
	in := func(all ...write) write {
		return func(tx *gorm.DB, a *keptAccount) error {
			for _, w := range all {
				if err := w(tx, a); err != nil {
					return err
				}
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		before, write write
		own           bool
	}{
		"a rival":                            {before: rival, write: update},
		"another struct":                     {own: true, before: byAnother, write: update},
		"another struct, twice":              {own: true, before: in(byAnother, byOneReadNow), write: update},
		"a rival, then one that was read":    {before: in(rival, byOneReadNow), write: update},
		"a rival, then another, then delete": {before: in(rival, byOneReadNow), write: func(tx *gorm.DB, a *keptAccount) error { return tx.Delete(a).Error }},
		"a rival, then IgnoreVersion": {write: update, before: in(rival, func(tx *gorm.DB, a *keptAccount) error {
			other := *a
			return tx.Clauses(gormlock.IgnoreVersion()).Model(&other).Update("balance", 5).Error
		})},
		"IgnoreVersion, which did not compare": {write: update, before: func(tx *gorm.DB, a *keptAccount) error {
			other := *a
			return tx.Clauses(gormlock.IgnoreVersion()).Model(&other).Update("balance", 5).Error
		}},
		"IgnoreVersion, whose row came back": {own: true, write: update, before: func(tx *gorm.DB, a *keptAccount) error {
			other := *a
			return tx.Clauses(gormlock.IgnoreVersion(), clause.Returning{}).Model(&other).Update("balance", 5).Error
		}},
		"Touch": {own: true, write: update, before: func(tx *gorm.DB, a *keptAccount) error { other := *a; return gormlock.Touch(tx, &other) }},
		"an upsert": {own: true, write: update, before: func(tx *gorm.DB, a *keptAccount) error {
			other := *a
			return tx.Clauses(stand.UpdateAll).Create(&other).Error
		}},
		"a slice": {own: true, write: update, before: func(tx *gorm.DB, a *keptAccount) error {
			other := *a
			return tx.Save([]*keptAccount{&other}).Error
		}},
		"a delete": {own: true, write: update, before: func(tx *gorm.DB, a *keptAccount) error {
			other := *a
			return tx.Unscoped().Delete(&other).Error
		}},
		"a soft delete": {own: true, write: update, before: func(tx *gorm.DB, a *keptAccount) error {
			other := *a
			return tx.Delete(&other).Error
		}},
		"a rival, then a delete": {write: update, before: in(rival, func(tx *gorm.DB, a *keptAccount) error {
			other := stand.Row[keptAccount](t, tx, a.ID)
			return tx.Unscoped().Delete(&other).Error
		})},
		"a write that was rolled back, then a rival": {write: update, before: in(func(tx *gorm.DB, a *keptAccount) error {
			err := tx.Transaction(func(tx *gorm.DB) error { return errors.Join(byAnother(tx, a), errors.New("back")) })
			if err == nil || !strings.HasSuffix(err.Error(), "back") {
				return errors.New("it was not rolled back")
			}
			return nil
		}, rival)},
		"of a slice": {own: true, before: byAnother, write: func(tx *gorm.DB, a *keptAccount) error { return tx.Save([]*keptAccount{a}).Error }},
		"of a slice, a rival": {before: in(rival, byOneReadNow), write: func(tx *gorm.DB, a *keptAccount) error {
			return tx.Save([]*keptAccount{a}).Error
		}},
		"of a delete": {own: true, before: byAnother, write: func(tx *gorm.DB, a *keptAccount) error { return tx.Delete(a).Error }},
		"of ExpectVersion": {own: true, before: byAnother, write: func(tx *gorm.DB, a *keptAccount) error {
			return tx.Clauses(gormlock.ExpectVersion(a.Version)).Model(&keptAccount{ID: a.ID}).Update("balance", 9).Error
		}},
		"of ExpectVersion, no key": {own: true, before: byAnother, write: func(tx *gorm.DB, a *keptAccount) error {
			return tx.Clauses(gormlock.ExpectVersion(a.Version)).Model(&keptAccount{}).Where("id = ?", a.ID).Update("balance", 9).Error
		}},
		"of a form, a rival": {before: in(rival, byOneReadNow), write: func(tx *gorm.DB, a *keptAccount) error {
			return tx.Model(&keptAccount{ID: a.ID}).Updates(keptAccount{Balance: 9, Version: a.Version}).Error
		}},
		"of VerifyVersion": {own: true, before: byAnother, write: func(tx *gorm.DB, a *keptAccount) error { return gormlock.VerifyVersion(tx, a) }},
		"of VerifyVersion, a rival": {before: in(rival, byOneReadNow), write: func(tx *gorm.DB, a *keptAccount) error {
			return gormlock.VerifyVersion(tx, a)
		}},
		"of IfUnchanged": {own: true, before: byAnother, write: func(tx *gorm.DB, a *keptAccount) error {
			now := stand.Row[keptAccount](t, tx, a.ID)
			return tx.Clauses(gormlock.IfUnchanged(a, "balance")).Model(&now).Update("note", "x").Error
		}},
		"of IfUnchanged, the version preserved": {own: true, write: func(tx *gorm.DB, a *keptAccount) error {
			now := stand.Row[keptAccount](t, tx, a.ID)
			return tx.Clauses(gormlock.IfUnchanged(a, "balance")).Model(&now).Update("note", "x").Error
		}, before: func(tx *gorm.DB, a *keptAccount) error {
			other := *a
			return tx.Clauses(gormlock.PreserveVersion()).Model(&other).Update("balance", 5).Error
		}},
		"of IfUnchanged, a rival": {before: in(rival, byOneReadNow), write: func(tx *gorm.DB, a *keptAccount) error {
			now := stand.Row[keptAccount](t, tx, a.ID)
			return tx.Clauses(gormlock.IfUnchanged(a, "balance")).Model(&now).Update("note", "x").Error
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			models := []any{&keptAccount{}}
			test := func(t *testing.T, db *gorm.DB) {
				a := stand.Made(t, db, keptAccount{})
				err := db.Transaction(func(tx *gorm.DB) error {
					if err := c.before(tx, &a); err != nil {
						t.Errorf("before: %v", err)
					}
					return c.write(tx, &a)
				})
				stand.MustStale(t, err)
				t.Log(err)
				stand.Equal(t, "retryable", gormlock.IsRetryable(err), !c.own)
				stand.Equal(t, "this transaction itself", strings.Contains(err.Error(), "this transaction itself"), c.own)
				var stale *gormlock.StaleError
				stand.Equal(t, "table", errors.As(err, &stale) && stale.Table == stand.TableOf(db, &a), true)
			}
			stand.OnBoth(t, models, test)
			t.Run("tables with their schema", func(t *testing.T) {
				t.Parallel()
				test(t, stand.Qualified(t, models))
			})
		})
	}
}

// A version ahead of its row is said of the struct that holds it, or of what the caller named.
func TestStale_ahead(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, []any{&keptAccount{}}, func(t *testing.T, db *gorm.DB) {
		a := stand.Made(t, db, keptAccount{})
		const given, held = "the row has not been at the expected version yet", "the struct is ahead of its row"
		for name, c := range map[string]struct {
			says  string
			write func() error
		}{
			"a struct":       {held, func() error { return db.Model(&keptAccount{ID: a.ID, Version: 9}).Update("balance", 1).Error }},
			"Save":           {held, func() error { return db.Save(&keptAccount{ID: a.ID, Version: 9}).Error }},
			"Delete":         {held, func() error { return db.Delete(&keptAccount{ID: a.ID, Version: 9}).Error }},
			"ExpectVersion":  {given, func() error { return db.Clauses(gormlock.ExpectVersion(9)).Model(&a).Update("balance", 1).Error }},
			"a delete of it": {given, func() error { return db.Clauses(gormlock.ExpectVersion(9)).Delete(&keptAccount{ID: a.ID}).Error }},
			"without a key": {given, func() error {
				return db.Clauses(gormlock.ExpectVersion(9)).Model(&keptAccount{}).Where("id = ?", a.ID).Update("balance", 1).Error
			}},
			"a form": {given, func() error {
				return db.Model(&keptAccount{ID: a.ID}).Updates(keptAccount{Balance: 1, Version: 9}).Error
			}},
			"a map": {given, func() error {
				return db.Model(&keptAccount{ID: a.ID}).Updates(map[string]any{"balance": 1, "version": 9}).Error
			}},
			"VerifyVersion": {given, func() error {
				return db.Transaction(func(tx *gorm.DB) error { return gormlock.VerifyVersion(tx.Clauses(gormlock.ExpectVersion(9)), &a) })
			}},
		} {
			if err := c.write(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: want %q, got %v", name, c.says, err)
			}
		}
	})
}
