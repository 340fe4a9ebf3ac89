package versions_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type shelvedPage struct {
	ID        int64
	Text      string
	DeletedAt gorm.DeletedAt
	Version   int64 `gorm:"not null;default:1" gormlock:"version"`
}

// A statement about many rows that names its version is a conflict where it writes no row at all, however it is written and
// whatever the reason; where it writes some, those at other versions are left as they are.
func TestExpectVersion_ofManyRows(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&stand.Account{}, &shelvedPage{}, &stand.RailsTask{}, &stand.TimedTask{}}, expectManyRows)
}

func expectManyRows(t *testing.T, db *gorm.DB) {
	ctx := context.Background()
	rows := []stand.Account{{Balance: 1}, {Balance: 2}, {Balance: 3}}
	stand.Must(t, db.Create(&rows).Error)
	stand.Must(t, db.Create(&[]shelvedPage{{Text: "a"}, {Text: "b"}}).Error)
	stand.Must(t, db.Create(&[]stand.RailsTask{{State: "a"}, {State: "b"}}).Error)
	stand.Must(t, db.Create(&[]stand.TimedTask{{State: "a"}, {State: "b"}}).Error)
	stand.Must(t, db.Model(&rows[2]).Update("balance", 4).Error) // at 2

	some := db.Model(&stand.Account{}).Where("balance > 0").Clauses(gormlock.ExpectVersion(1)).Update("note", "x")
	stand.Must(t, some.Error)
	stand.Equal(t, "of three rows", some.RowsAffected, 2)
	stand.Equal(t, "the row at another version", stand.Row[stand.Account](t, db, rows[2].ID), rows[2])

	expect := func(session *gorm.DB) *gorm.DB { return session.Clauses(gormlock.ExpectVersion(99)) }
	returning := clause.Returning{}
	for name, write := range map[string]func(where ...any) error{
		"Update": func(w ...any) error {
			return expect(db).Model(&stand.Account{}).Where(w[0], w[1:]...).Update("balance", 9).Error
		},
		"Update, unbumped": func(w ...any) error {
			return expect(db).Model(&stand.Account{}).Where(w[0], w[1:]...).Update("note", "y").Error
		},
		"UpdateColumn": func(w ...any) error {
			return expect(db).Model(&stand.Account{}).Where(w[0], w[1:]...).UpdateColumn("balance", 9).Error
		},
		"Updates, struct": func(w ...any) error {
			return expect(db).Model(&stand.Account{}).Where(w[0], w[1:]...).Updates(stand.Account{Balance: 9}).Error
		},
		"Updates, map": func(w ...any) error {
			return expect(db).Model(&stand.Account{}).Where(w[0], w[1:]...).Updates(map[string]any{"balance": 9}).Error
		},
		"Updates, version": func(w ...any) error {
			return db.Model(&stand.Account{}).Where(w[0], w[1:]...).Updates(stand.Account{Balance: 9, Version: 99}).Error
		},
		"Updates, expected": func(w ...any) error {
			return db.Model(&stand.Account{}).Where(w[0], w[1:]...).Updates(map[string]any{"balance": 9, "version": 99}).Error
		},
		"Updates, returning": func(w ...any) error {
			return expect(db).Model(&[]stand.Account{}).Clauses(returning).Where(w[0], w[1:]...).Update("balance", 9).Error
		},
		"Preserve": func(w ...any) error {
			return expect(db).Clauses(gormlock.PreserveVersion()).Model(&stand.Account{}).Where(w[0], w[1:]...).Update("balance", 9).Error
		},
		"no hooks": func(w ...any) error {
			return expect(db.Session(&gorm.Session{SkipHooks: true, SkipDefaultTransaction: true})).Model(&stand.Account{}).Where(w[0], w[1:]...).Update("balance", 9).Error
		},
		"Delete": func(w ...any) error { return expect(db).Where(w[0], w[1:]...).Delete(&stand.Account{}).Error },
		"Delete, soft": func(w ...any) error {
			return expect(db).Where("id > 0").Where("text <> ''").Delete(&shelvedPage{}).Error
		},
		"Delete, unscoped": func(w ...any) error { return expect(db).Unscoped().Where("id > 0").Delete(&shelvedPage{}).Error },
		"Delete, key":      func(w ...any) error { return expect(db).Delete(&stand.Account{}, rows[0].ID).Error },
		"Delete, keys": func(w ...any) error {
			return expect(db).Delete(&stand.Account{}, []int64{rows[0].ID, rows[1].ID}).Error
		},
		"G.Update": func(w ...any) error {
			return stand.ErrorOf(gorm.G[stand.Account](db, gormlock.ExpectVersion(99)).Where(w[0], w[1:]...).Update(ctx, "balance", 9))
		},
		"G.Updates": func(w ...any) error {
			return stand.ErrorOf(gorm.G[stand.Account](db, gormlock.ExpectVersion(99)).Where(w[0], w[1:]...).Updates(ctx, stand.Account{Balance: 9}))
		},
		"G.Set": func(w ...any) error {
			return stand.ErrorOf(gorm.G[stand.Account](db, gormlock.ExpectVersion(99)).Where(w[0], w[1:]...).Set(clause.Assignment{Column: clause.Column{Name: "balance"}, Value: 9}).Update(ctx))
		},
		"G.Delete": func(w ...any) error {
			return stand.ErrorOf(gorm.G[stand.Account](db, gormlock.ExpectVersion(99)).Where(w[0], w[1:]...).Delete(ctx))
		},
		"every row": func(...any) error {
			return expect(db.Session(&gorm.Session{AllowGlobalUpdate: true})).Model(&stand.Account{}).Update("balance", 9).Error
		},
		"every row, Delete": func(...any) error {
			return expect(db.Session(&gorm.Session{AllowGlobalUpdate: true})).Delete(&stand.Account{}).Error
		},
		"every row, soft": func(...any) error {
			return expect(db.Session(&gorm.Session{AllowGlobalUpdate: true})).Delete(&shelvedPage{}).Error
		},
		"every row, as before": func(...any) error {
			return db.Session(&gorm.Session{AllowGlobalUpdate: true}).Clauses(gormlock.IfUnchanged(&stand.Account{Balance: 77}, "balance")).Model(&stand.Account{}).Update("balance", 9).Error
		},
		"of Rails": func(...any) error {
			return expect(db).Model(&stand.RailsTask{}).Where("id > 0").Update("state", "c").Error
		},
		"of time": func(...any) error {
			return db.Clauses(gormlock.ExpectVersion(time.Unix(1, 0))).Model(&stand.TimedTask{}).Where("id > 0").Update("state", "c").Error
		},
	} {
		for where, condition := range map[string][]any{"rows at other versions": {"id > ?", 0}, "no rows": {"id < ?", 0}} {
			t.Run(name+", "+where, func(t *testing.T) {
				stand.MustStale(t, write(condition...))
			})
		}
	}
	stand.Equal(t, "after all of them", stand.Row[stand.Account](t, db, rows[2].ID), rows[2])
	if err := expect(db).Model(&stand.Account{}).Update("balance", 9).Error; !errors.Is(err, gorm.ErrMissingWhereClause) {
		t.Error(err)
	}
}
