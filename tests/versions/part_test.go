package versions_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// asking is a clause that asks something of a row.
type asking interface {
	clause.Interface
	ModifyStatement(*gorm.Statement)
}

// expectations are what a statement can ask of a row, here wrongly.
func expectations(a stand.Account) map[string]asking {
	other := a
	other.Balance = 77
	return map[string]asking{
		"ExpectVersion": gormlock.ExpectVersion(99), "IfUnchanged": gormlock.IfUnchanged(&other, "balance"),
		"IfMatch": stand.IfMatch(`"98"`, `"99"`), "IfMatch, any": stand.IfMatch("*"),
	}
}

// TestExpectations_whereNothingIsCompared: what cannot compare is an error, and writes and returns nothing.
func TestExpectations_whereNothingIsCompared(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	type ask = func(db *gorm.DB, c asking) error
	of := func(tx *gorm.DB) error { return tx.Error }
	asks := map[string]ask{
		"group, update": func(db *gorm.DB, c asking) error {
			return of(db.Model(&stand.Account{}).Where(db.Clauses(c).Where("id > 0").Where("id < 9")).Update("balance", 5))
		},
		"group of one, update": func(db *gorm.DB, c asking) error {
			return of(db.Model(&stand.Account{}).Where("id > 0").Where(db.Clauses(c).Where("id < 9")).Update("balance", 5))
		},
		"empty group, update": func(db *gorm.DB, c asking) error {
			return of(db.Model(&stand.Account{}).Where("id > 0").Where(db.Clauses(c)).Update("balance", 5))
		},
		"scope of a group, update": func(db *gorm.DB, c asking) error {
			return of(db.Model(&stand.Account{}).Where("id > 0").Where(db.Where("id < 9").Scopes(func(q *gorm.DB) *gorm.DB { return q.Clauses(c) })).Update("balance", 5))
		},
		"Or, update": func(db *gorm.DB, c asking) error {
			return of(db.Model(&stand.Account{}).Where("id = 0").Or(db.Clauses(c).Where("id < 9")).Update("balance", 5))
		},
		"Not, update": func(db *gorm.DB, c asking) error {
			return of(db.Model(&stand.Account{}).Not(db.Clauses(c).Where("id = 0")).Update("balance", 5))
		},
		"group, struct": func(db *gorm.DB, c asking) error {
			return of(db.Model(&stand.Account{ID: 1, Version: 1}).Where(db.Clauses(c).Where("id > 0")).Update("balance", 5))
		},
		"another expectation in a group": func(db *gorm.DB, c asking) error {
			return of(db.Model(&stand.Account{ID: 1, Version: 1}).Clauses(gormlock.ExpectVersion(1)).Where(db.Clauses(c).Where("id > 0")).Update("balance", 5))
		},
		"group, delete": func(db *gorm.DB, c asking) error {
			return of(db.Where(db.Clauses(c).Where("id > 0")).Delete(&stand.Account{}))
		},
		"group, find": func(db *gorm.DB, c asking) error {
			return of(db.Where(db.Clauses(c).Where("id > 0")).Find(&[]stand.Account{}))
		},
		"sub-query, delete": func(db *gorm.DB, c asking) error {
			return of(db.Where("id IN (?)", db.Clauses(c).Model(&stand.Account{}).Select("id")).Delete(&stand.Account{}))
		},
		"sub-query, find": func(db *gorm.DB, c asking) error {
			return of(db.Where("id IN (?)", db.Clauses(c).Model(&stand.Account{}).Select("id")).Find(&[]stand.Account{}))
		},
		"sub-query as table": func(db *gorm.DB, c asking) error {
			return of(db.Table("(?) AS a", db.Clauses(c).Model(&stand.Account{})).Find(&[]stand.Account{}))
		},
		"Find":  func(db *gorm.DB, c asking) error { return of(db.Clauses(c).Find(&[]stand.Account{})) },
		"First": func(db *gorm.DB, c asking) error { return of(db.Clauses(c).First(&stand.Account{})) },
		"Take": func(db *gorm.DB, c asking) error {
			return of(db.Clauses(c).Take(&stand.Account{ID: 1}))
		},
		"scope, Find": func(db *gorm.DB, c asking) error {
			return of(db.Scopes(func(q *gorm.DB) *gorm.DB { return q.Clauses(c) }).Find(&[]stand.Account{}))
		},
		"Count": func(db *gorm.DB, c asking) error {
			var n int64
			return of(db.Model(&stand.Account{}).Clauses(c).Count(&n))
		},
		"Pluck": func(db *gorm.DB, c asking) error {
			return of(db.Model(&stand.Account{}).Clauses(c).Pluck("id", &[]int64{}))
		},
		"Scan": func(db *gorm.DB, c asking) error {
			return of(db.Model(&stand.Account{}).Clauses(c).Scan(&[]stand.Account{}))
		},
		"Row": func(db *gorm.DB, c asking) error {
			var id int64
			return db.Model(&stand.Account{}).Clauses(c).Select("id").Row().Scan(&id)
		},
		"Rows": func(db *gorm.DB, c asking) error {
			rows, err := db.Model(&stand.Account{}).Clauses(c).Rows()
			if err != nil {
				return err
			}
			defer func() { _ = rows.Close() }()
			return rows.Err()
		},
		"FindInBatches": func(db *gorm.DB, c asking) error {
			return of(db.Clauses(c).FindInBatches(&[]stand.Account{}, 1, func(*gorm.DB, int) error { return nil }))
		},
		"FirstOrCreate": func(db *gorm.DB, c asking) error {
			return of(db.Clauses(c).FirstOrCreate(&stand.Account{}, "id = 1"))
		},
		"FirstOrInit": func(db *gorm.DB, c asking) error {
			return of(db.Clauses(c).FirstOrInit(&stand.Account{}, "id = 1"))
		},
		"generics, Find": func(db *gorm.DB, c asking) error {
			_, err := gorm.G[stand.Account](db, c).Find(ctx)
			return err
		},
		"generics, First": func(db *gorm.DB, c asking) error {
			_, err := gorm.G[stand.Account](db, c).Where("id = 1").First(ctx)
			return err
		},
		"generics, Count": func(db *gorm.DB, c asking) error {
			_, err := gorm.G[stand.Account](db, c).Count(ctx, "*")
			return err
		},
	}
	db := stand.Versioned(t, []any{&stand.Account{}})
	stand.Must(t, db.Create(&stand.Account{ID: 1, Balance: 1}).Error)
	before := stand.Row[stand.Account](t, db, 1)
	for name, ask := range asks {
		for asked, c := range expectations(before) {
			err := ask(db, c)
			if err == nil || errors.Is(err, gorm.ErrRecordNotFound) || errors.Is(err, gormlock.ErrStale) {
				t.Errorf("%s, %s: %v", name, asked, err)
			}
			stand.Equal(t, name, stand.Row[stand.Account](t, db, 1), before)
		}
	}
}

// TestExpectations_onAllPartsOfOneStatement: a group made of the statement's own db, which expects the same, is one.
func TestExpectations_onAllPartsOfOneStatement(t *testing.T) {
	t.Parallel()
	db, a := stand.Stored(t, stand.Account{Balance: 1})
	asked := db.Clauses(gormlock.ExpectVersion(1), gormlock.IfUnchanged(&a, "balance")).Session(&gorm.Session{})
	stand.Must(t, asked.Model(&stand.Account{}).Where(asked.Where("id = ?", a.ID).Or("id = 0")).Update("balance", 2).Error)
	stand.MustStale(t, asked.Model(&stand.Account{}).Where(asked.Where("id = ?", a.ID).Or("id = 0")).Update("balance", 3).Error)
	stand.Must(t, db.Clauses(gormlock.ExpectVersion(2)).Clauses(gormlock.ExpectVersion(2)).Model(&stand.Account{}).Where("id = ?", a.ID).Update("balance", 4).Error)
	stand.Must(t, db.Clauses(gormlock.ExpectVersion(3)).Or("id = ?", a.ID).Model(&stand.Account{}).Update("balance", 5).Error)
	stand.Must(t, db.Clauses(gormlock.ExpectVersion(4)).Where("id = ?", a.ID).Delete(&stand.Account{}).Error)
	if err := db.Clauses(gormlock.ExpectVersion(5)).Delete(&stand.Account{}).Error; !errors.Is(err, gorm.ErrMissingWhereClause) {
		t.Error("an expectation is no condition", err)
	}
}

// TestExpectations_inPartsOfSubQueries: GORM drops the error of a sub-query; that of its group is not lost.
func TestExpectations_inPartsOfSubQueries(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	stand.Must(t, db.Create(&stand.Account{ID: 1, Balance: 1}).Error)
	before := stand.Row[stand.Account](t, db, 1)
	for name, c := range map[string]clause.Expression{
		"ExpectVersion": gormlock.ExpectVersion(99), "IfMatch": stand.IfMatch(`"98"`, `"99"`), "XactLock": gormlock.XactLock(gormlock.Key("part")), "RowLock": gormlock.RowLock(gormlock.ForUpdate),
	} {
		group := db.Clauses(c).Where("id = 1").Where("1 = 1")
		for where, tx := range map[string]*gorm.DB{
			"condition": db.Model(&stand.Account{}).Where("id IN (?)", db.Model(&stand.Account{}).Where(group).Select("id")).Update("balance", 5),
			"value":     db.Model(&stand.Account{}).Where("id = 1").Update("balance", db.Model(&stand.Account{}).Where(group).Select("7")),
		} {
			if tx.Error == nil {
				t.Errorf("%s in the group of a sub-query as %s", name, where)
			}
		}
	}
	stand.Equal(t, "row", stand.Row[stand.Account](t, db, 1), before)
}

// TestExpectations_staleBesideAGroup: the error says where the row is, and nothing of the group.
func TestExpectations_staleBesideAGroup(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	stand.Must(t, db.Create(&stand.Account{ID: 1, Balance: 1}).Error)
	asked := db.Clauses(gormlock.ExpectVersion(7)).Session(&gorm.Session{})
	err := asked.Model(&stand.Account{}).Where(asked.Where("id = 1").Where("balance = 1")).Update("balance", 5).Error
	stand.Equal[any](t, "actual", stand.MustBeStale(t, err).Actual, int64(1))
	stand.Equal(t, "text", err.Error(), "gormlock: accounts id=1: version 7 is stale, the row is at 1: the row has not been at the expected version yet: is it that of another row?")
	one := db.Clauses(gormlock.ExpectVersion(1)).Session(&gorm.Session{})
	same := db.Clauses(gormlock.ExpectVersion(int64(1))).Session(&gorm.Session{})
	stand.Must(t, one.Model(&stand.Account{}).Where(same.Where("id = 1").Where("balance = 1")).Update("balance", 5).Error)
}
