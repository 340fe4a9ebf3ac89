package gormlock_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
)

// expectations are what a statement can ask of a row, here wrongly.
func expectations(a account) map[string]gormlock.VersionClause {
	other := a
	other.Balance = 77
	return map[string]gormlock.VersionClause{
		"ExpectVersion": gormlock.ExpectVersion(99), "IfUnchanged": gormlock.IfUnchanged(&other, "balance"),
	}
}

// TestExpectations_whereNothingIsCompared: what cannot compare is an error, and writes and returns nothing.
func TestExpectations_whereNothingIsCompared(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	type ask = func(db *gorm.DB, c gormlock.VersionClause) error
	of := func(tx *gorm.DB) error { return tx.Error }
	asks := map[string]ask{
		"group, update": func(db *gorm.DB, c gormlock.VersionClause) error {
			return of(db.Model(&account{}).Where(db.Clauses(c).Where("id > 0").Where("id < 9")).Update("balance", 5))
		},
		"group of one, update": func(db *gorm.DB, c gormlock.VersionClause) error {
			return of(db.Model(&account{}).Where("id > 0").Where(db.Clauses(c).Where("id < 9")).Update("balance", 5))
		},
		"empty group, update": func(db *gorm.DB, c gormlock.VersionClause) error {
			return of(db.Model(&account{}).Where("id > 0").Where(db.Clauses(c)).Update("balance", 5))
		},
		"scope of a group, update": func(db *gorm.DB, c gormlock.VersionClause) error {
			return of(db.Model(&account{}).Where("id > 0").Where(db.Where("id < 9").Scopes(func(q *gorm.DB) *gorm.DB { return q.Clauses(c) })).Update("balance", 5))
		},
		"Or, update": func(db *gorm.DB, c gormlock.VersionClause) error {
			return of(db.Model(&account{}).Where("id = 0").Or(db.Clauses(c).Where("id < 9")).Update("balance", 5))
		},
		"Not, update": func(db *gorm.DB, c gormlock.VersionClause) error {
			return of(db.Model(&account{}).Not(db.Clauses(c).Where("id = 0")).Update("balance", 5))
		},
		"group, struct": func(db *gorm.DB, c gormlock.VersionClause) error {
			return of(db.Model(&account{ID: 1, Version: 1}).Where(db.Clauses(c).Where("id > 0")).Update("balance", 5))
		},
		"another expectation in a group": func(db *gorm.DB, c gormlock.VersionClause) error {
			return of(db.Model(&account{ID: 1, Version: 1}).Clauses(gormlock.ExpectVersion(1)).Where(db.Clauses(c).Where("id > 0")).Update("balance", 5))
		},
		"group, delete": func(db *gorm.DB, c gormlock.VersionClause) error {
			return of(db.Where(db.Clauses(c).Where("id > 0")).Delete(&account{}))
		},
		"group, find": func(db *gorm.DB, c gormlock.VersionClause) error {
			return of(db.Where(db.Clauses(c).Where("id > 0")).Find(&[]account{}))
		},
		"sub-query, delete": func(db *gorm.DB, c gormlock.VersionClause) error {
			return of(db.Where("id IN (?)", db.Clauses(c).Model(&account{}).Select("id")).Delete(&account{}))
		},
		"sub-query, find": func(db *gorm.DB, c gormlock.VersionClause) error {
			return of(db.Where("id IN (?)", db.Clauses(c).Model(&account{}).Select("id")).Find(&[]account{}))
		},
		"sub-query as table": func(db *gorm.DB, c gormlock.VersionClause) error {
			return of(db.Table("(?) AS a", db.Clauses(c).Model(&account{})).Find(&[]account{}))
		},
		"Find":  func(db *gorm.DB, c gormlock.VersionClause) error { return of(db.Clauses(c).Find(&[]account{})) },
		"First": func(db *gorm.DB, c gormlock.VersionClause) error { return of(db.Clauses(c).First(&account{})) },
		"Take": func(db *gorm.DB, c gormlock.VersionClause) error {
			return of(db.Clauses(c).Take(&account{ID: 1}))
		},
		"scope, Find": func(db *gorm.DB, c gormlock.VersionClause) error {
			return of(db.Scopes(func(q *gorm.DB) *gorm.DB { return q.Clauses(c) }).Find(&[]account{}))
		},
		"Count": func(db *gorm.DB, c gormlock.VersionClause) error {
			var n int64
			return of(db.Model(&account{}).Clauses(c).Count(&n))
		},
		"Pluck": func(db *gorm.DB, c gormlock.VersionClause) error {
			return of(db.Model(&account{}).Clauses(c).Pluck("id", &[]int64{}))
		},
		"Scan": func(db *gorm.DB, c gormlock.VersionClause) error {
			return of(db.Model(&account{}).Clauses(c).Scan(&[]account{}))
		},
		"Row": func(db *gorm.DB, c gormlock.VersionClause) error {
			var id int64
			return db.Model(&account{}).Clauses(c).Select("id").Row().Scan(&id)
		},
		"Rows": func(db *gorm.DB, c gormlock.VersionClause) error {
			rows, err := db.Model(&account{}).Clauses(c).Rows()
			if err != nil {
				return err
			}
			defer func() { _ = rows.Close() }()
			return rows.Err()
		},
		"FindInBatches": func(db *gorm.DB, c gormlock.VersionClause) error {
			return of(db.Clauses(c).FindInBatches(&[]account{}, 1, func(*gorm.DB, int) error { return nil }))
		},
		"FirstOrCreate": func(db *gorm.DB, c gormlock.VersionClause) error {
			return of(db.Clauses(c).FirstOrCreate(&account{}, "id = 1"))
		},
		"FirstOrInit": func(db *gorm.DB, c gormlock.VersionClause) error {
			return of(db.Clauses(c).FirstOrInit(&account{}, "id = 1"))
		},
		"generics, Find": func(db *gorm.DB, c gormlock.VersionClause) error {
			_, err := gorm.G[account](db, c).Find(ctx)
			return err
		},
		"generics, First": func(db *gorm.DB, c gormlock.VersionClause) error {
			_, err := gorm.G[account](db, c).Where("id = 1").First(ctx)
			return err
		},
		"generics, Count": func(db *gorm.DB, c gormlock.VersionClause) error {
			_, err := gorm.G[account](db, c).Count(ctx, "*")
			return err
		},
	}
	db := versioned(t, []any{&account{}})
	must(t, db.Create(&account{ID: 1, Balance: 1}).Error)
	before := row[account](t, db, 1)
	for name, ask := range asks {
		for asked, c := range expectations(before) {
			err := ask(db, c)
			if err == nil || errors.Is(err, gorm.ErrRecordNotFound) || errors.Is(err, gormlock.ErrStale) {
				t.Errorf("%s, %s: %v", name, asked, err)
			}
			equal(t, name, row[account](t, db, 1), before)
		}
	}
}

// TestExpectations_onAllPartsOfOneStatement: a group made of the statement's own db, which expects the same, is one.
func TestExpectations_onAllPartsOfOneStatement(t *testing.T) {
	t.Parallel()
	db := versioned(t, []any{&account{}})
	a := account{Balance: 1}
	must(t, db.Create(&a).Error)
	asked := db.Clauses(gormlock.ExpectVersion(1), gormlock.IfUnchanged(&a, "balance")).Session(&gorm.Session{})
	must(t, asked.Model(&account{}).Where(asked.Where("id = ?", a.ID).Or("id = 0")).Update("balance", 2).Error)
	mustStale(t, asked.Model(&account{}).Where(asked.Where("id = ?", a.ID).Or("id = 0")).Update("balance", 3).Error)
	must(t, db.Clauses(gormlock.ExpectVersion(1)).Clauses(gormlock.ExpectVersion(2)).Model(&account{}).Where("id = ?", a.ID).Update("balance", 4).Error)
	must(t, db.Clauses(gormlock.ExpectVersion(3)).Or("id = ?", a.ID).Model(&account{}).Update("balance", 5).Error)
	must(t, db.Clauses(gormlock.ExpectVersion(4)).Where("id = ?", a.ID).Delete(&account{}).Error)
	if err := db.Clauses(gormlock.ExpectVersion(5)).Delete(&account{}).Error; !errors.Is(err, gorm.ErrMissingWhereClause) {
		t.Error("an expectation is no condition", err)
	}
}

// TestExpectations_inPartsOfSubQueries: GORM drops the error of a sub-query; that of its group is not lost.
func TestExpectations_inPartsOfSubQueries(t *testing.T) {
	t.Parallel()
	db := versioned(t, []any{&account{}})
	must(t, db.Create(&account{ID: 1, Balance: 1}).Error)
	before := row[account](t, db, 1)
	for name, c := range map[string]clause.Expression{
		"ExpectVersion": gormlock.ExpectVersion(99), "XactLock": gormlock.XactLock(gormlock.Key("part")), "RowLock": gormlock.RowLock(gormlock.ForUpdate),
	} {
		group := db.Clauses(c).Where("id = 1").Where("1 = 1")
		for where, tx := range map[string]*gorm.DB{
			"condition": db.Model(&account{}).Where("id IN (?)", db.Model(&account{}).Where(group).Select("id")).Update("balance", 5),
			"value":     db.Model(&account{}).Where("id = 1").Update("balance", db.Model(&account{}).Where(group).Select("7")),
		} {
			if tx.Error == nil {
				t.Errorf("%s in the group of a sub-query as %s", name, where)
			}
		}
	}
	equal(t, "row", row[account](t, db, 1), before)
}

// TestExpectations_staleBesideAGroup: the error says where the row is, and nothing of the group.
func TestExpectations_staleBesideAGroup(t *testing.T) {
	t.Parallel()
	db := versioned(t, []any{&account{}})
	must(t, db.Create(&account{ID: 1, Balance: 1}).Error)
	asked := db.Clauses(gormlock.ExpectVersion(7)).Session(&gorm.Session{})
	err := asked.Model(&account{}).Where(asked.Where("id = 1").Where("balance = 1")).Update("balance", 5).Error
	equal[any](t, "actual", mustBeStale(t, err).Actual, int64(1))
	equal(t, "text", err.Error(), "gormlock: accounts id=1: version 7 is stale, the row is at 1")
	one := db.Clauses(gormlock.ExpectVersion(1)).Session(&gorm.Session{})
	same := db.Clauses(gormlock.ExpectVersion(int64(1))).Session(&gorm.Session{})
	must(t, one.Model(&account{}).Where(same.Where("id = 1").Where("balance = 1")).Update("balance", 5).Error)
}
