package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// Wherever conditions of the caller stand beside one of gormlock, text that closes a parenthesis of gormlock is refused: what
// stands behind it would be true without the version.
func TestConditionsStayInBrackets(t *testing.T) {
	t.Parallel()
	const text = "1=1) OR (1=1"
	key, raw := []clause.Column{{Name: "id"}}, clause.Where{Exprs: []clause.Expression{gorm.Expr(text)}}
	several := clause.Where{Exprs: []clause.Expression{clause.Gt{Column: "accounts.balance", Value: 0}, clause.Or(gorm.Expr("1=1)\tOR (1=1"))}}
	upsert := clause.OnConflict{Columns: key, UpdateAll: true, Where: raw}
	set := clause.OnConflict{Columns: key, DoUpdates: clause.AssignmentColumns([]string{"balance"}), Where: several}
	target := clause.OnConflict{Columns: key, UpdateAll: true, TargetWhere: raw}
	at, ask := gormlock.ExpectVersion(1), func(db *gorm.DB) *gorm.DB { return db.Where(text) }
	unchanged := gormlock.IfUnchanged(&stand.Account{Balance: 1}, "balance")
	bulk := func(db *gorm.DB) *gorm.DB { return db.Model(&stand.Account{}).Where(text) }
	inTx := func(do func(tx *gorm.DB) error) func(*gorm.DB, *stand.Account) error {
		return func(db *gorm.DB, _ *stand.Account) error { return db.Transaction(do) }
	}
	stand.Beside(t, map[string]func(db *gorm.DB, a *stand.Account) error{
		"upsert":          func(db *gorm.DB, a *stand.Account) error { return db.Clauses(upsert).Create(a).Error },
		"upsert, columns": func(db *gorm.DB, a *stand.Account) error { return db.Clauses(set).Create(a).Error },
		"upsert, target":  func(db *gorm.DB, a *stand.Account) error { return db.Clauses(target).Create(a).Error },
		"upsert of slice": func(db *gorm.DB, a *stand.Account) error { return db.Clauses(upsert).Create([]*stand.Account{a}).Error },
		"upsert, gorm.G": func(db *gorm.DB, a *stand.Account) error {
			return gorm.G[stand.Account](db, upsert).Create(t.Context(), a)
		},
		"Save of slice": func(db *gorm.DB, a *stand.Account) error { return db.Clauses(upsert).Save([]*stand.Account{a}).Error },
		"Update":        func(db *gorm.DB, a *stand.Account) error { return db.Model(a).Where(text).Update("balance", 7).Error },
		"Updates of slice": func(db *gorm.DB, a *stand.Account) error {
			return db.Model([]*stand.Account{a}).Where(text).Update("balance", 7).Error
		},
		"Save":   func(db *gorm.DB, a *stand.Account) error { return db.Where(text).Save(a).Error },
		"Delete": func(db *gorm.DB, a *stand.Account) error { return db.Where(text).Delete(a).Error },
		"Touch":  func(db *gorm.DB, a *stand.Account) error { return gormlock.Touch(db.Where(text), a) },
		"SaveMerged": func(db *gorm.DB, a *stand.Account) error {
			base := *a
			a.Balance++
			return gormlock.SaveMerged(db.Where(text), a, &base)
		},
		"bulk, ExpectVersion": func(db *gorm.DB, _ *stand.Account) error { return bulk(db).Clauses(at).Update("balance", 7).Error },
		"bulk, IfUnchanged": func(db *gorm.DB, _ *stand.Account) error {
			return bulk(db).Clauses(unchanged).Update("balance", 7).Error
		},
		"bulk, form": func(db *gorm.DB, _ *stand.Account) error {
			return bulk(db).Updates(struct{ Balance, Version int64 }{7, 1}).Error
		},
		"bulk, in a group": func(db *gorm.DB, _ *stand.Account) error {
			return db.Model(&stand.Account{}).Clauses(at).Where(db.Where(text)).Update("balance", 7).Error
		},
		"bulk, a mark": func(db *gorm.DB, _ *stand.Account) error {
			return db.Model(&stand.Account{}).Clauses(at).Where(db.Where(text).Clauses(at)).Update("balance", 7).Error
		},
		"bulk Delete": func(db *gorm.DB, _ *stand.Account) error {
			return db.Where(text).Clauses(at).Delete(&stand.Account{}).Error
		},
		"bulk Delete, gorm.G": func(db *gorm.DB, _ *stand.Account) error {
			return stand.ErrorOf(gorm.G[stand.Account](db, at).Where(text).Delete(t.Context()))
		},
		"bulk, gorm.G": func(db *gorm.DB, _ *stand.Account) error {
			return stand.ErrorOf(gorm.G[stand.Account](db, at).Where(text).Update(t.Context(), "balance", 7))
		},
		"LockRow":  inTx(func(tx *gorm.DB) error { return gormlock.LockRow(tx.Where(text), &stand.Account{ID: 1}) }),
		"LockRows": inTx(func(tx *gorm.DB) error { return gormlock.LockRows(tx.Where(text), &[]stand.Account{{ID: 1}}) }),
		"LockRow, a mark": inTx(func(tx *gorm.DB) error {
			mark := gormlock.RowLock(gormlock.ForUpdate)
			return gormlock.LockRow(tx.Clauses(mark).Where(tx.Session(&gorm.Session{NewDB: true}).Where(text).Clauses(mark)), &stand.Account{ID: 1})
		}),
		"VerifyVersion": inTx(func(tx *gorm.DB) error {
			return gormlock.VerifyVersion(tx.Where(text), &stand.Account{ID: 1, Version: 1})
		}),
		"Claim, two lists": inTx(func(tx *gorm.DB) error {
			two := func(q *gorm.DB) *gorm.DB { return q.Where("1=1) || ARRAY(SELECT id FROM accounts WHERE true") }
			return stand.ErrorOf(gormlock.Claim[stand.Account](tx, 1, map[string]any{"balance": 7}, two))
		}),
		"Claim, ORDER BY": inTx(func(tx *gorm.DB) error {
			two := func(q *gorm.DB) *gorm.DB { return q.Order("id) || ARRAY(SELECT id FROM accounts") }
			return stand.ErrorOf(gormlock.Claim[stand.Account](tx, 1, map[string]any{"balance": 7}, two))
		}),
		"Claim": inTx(func(tx *gorm.DB) error {
			return stand.ErrorOf(gormlock.Claim[stand.Account](tx, 1, map[string]any{"balance": 7}, ask))
		}),
	}, func(t *testing.T, write func(*gorm.DB, *stand.Account) error) {
		db, a := stand.Stored(t, stand.Account{Balance: 1})
		stand.Must(t, db.Model(&stand.Account{}).Where("id = ?", a.ID).Update("balance", 1).Error)
		before := stand.Row[stand.Account](t, db, a.ID)
		if err := write(db, &a); err == nil || !strings.Contains(err.Error(), "close a parenthesis") {
			t.Errorf("%v", err)
		}
		stand.Equal(t, "row", stand.Row[stand.Account](t, db, a.ID), before)
		stand.Equal(t, "the struct's version", a.Version, 1)
	})
}

// An OR, however it is written, reaches no row without the condition on its version.
func TestConditionsStayInBrackets_or(t *testing.T) {
	t.Parallel()
	db, a := stand.Stored(t, stand.Account{Balance: 1})
	stand.Must(t, db.Model(&stand.Account{}).Where("id = ?", a.ID).Update("balance", 1).Error)
	for _, own := range []clause.Expression{gorm.Expr("accounts.balance > 5\tOR true"), clause.Or(gorm.Expr("true"))} {
		where := clause.Where{Exprs: []clause.Expression{clause.Eq{Column: "accounts.balance", Value: 5}, own}}
		stand.MustStale(t, db.Clauses(clause.OnConflict{UpdateAll: true, Where: where}).Create(&a).Error)
		stand.MustStale(t, db.Model(&stand.Account{}).Clauses(gormlock.ExpectVersion(1), where).Update("balance", 7).Error)
	}
	stand.Must(t, db.First(&a, a.ID).Error)
	stand.Must(t, db.Clauses(clause.OnConflict{
		Columns: []clause.Column{{Name: "id"}}, UpdateAll: true, TargetWhere: clause.Where{Exprs: []clause.Expression{gorm.Expr("true OR false")}},
		Where: clause.Where{Exprs: []clause.Expression{gorm.Expr("accounts.note <> ')' OR false")}},
	}).Create(&a).Error)
	stand.Equal(t, "version", stand.Row[stand.Account](t, db, a.ID).Version, a.Version)
}
