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

	for kind, expected := range map[string]asking{"ExpectVersion": gormlock.ExpectVersion(99), "IfMatch": stand.IfMatch(`"98"`, `"99"`), "IfMatch, weak": stand.IfMatch(`W/"1"`)} {
		t.Run(kind, func(t *testing.T) { expectOfManyRows(t, db, rows, expected) })
	}
	stand.Equal(t, "after all of them", stand.Row[stand.Account](t, db, rows[2].ID), rows[2])
	for _, expected := range []asking{gormlock.ExpectVersion(99), stand.IfMatch("*"), stand.IfMatch(`"98"`, `"99"`)} {
		if err := db.Clauses(expected).Model(&stand.Account{}).Update("balance", 9).Error; !errors.Is(err, gorm.ErrMissingWhereClause) {
			t.Error(err)
		}
	}
	stand.MustStale(t, db.Clauses(stand.IfMatch("*")).Model(&stand.Account{}).Where("id < 0").Update("balance", 9).Error)
}

func expectOfManyRows(t *testing.T, db *gorm.DB, rows []stand.Account, expected asking) {
	ctx := context.Background()
	expect := func(session *gorm.DB) *gorm.DB { return session.Clauses(expected) }
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
			return stand.ErrorOf(gorm.G[stand.Account](db, expected).Where(w[0], w[1:]...).Update(ctx, "balance", 9))
		},
		"G.Updates": func(w ...any) error {
			return stand.ErrorOf(gorm.G[stand.Account](db, expected).Where(w[0], w[1:]...).Updates(ctx, stand.Account{Balance: 9}))
		},
		"G.Set": func(w ...any) error {
			return stand.ErrorOf(gorm.G[stand.Account](db, expected).Where(w[0], w[1:]...).Set(clause.Assignment{Column: clause.Column{Name: "balance"}, Value: 9}).Update(ctx))
		},
		"G.Delete": func(w ...any) error {
			return stand.ErrorOf(gorm.G[stand.Account](db, expected).Where(w[0], w[1:]...).Delete(ctx))
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
}

type secondTask struct {
	ID      int64
	State   string
	Version time.Time `gorm:"type:timestamp(0)" gormlock:"version"`
}

// P34: a bulk statement that names the time it expects moves it, also within one tick of its column: a second one that
// expects the same is stale.
func TestP34_ExpectVersionOfManyRowsMovesTime(t *testing.T) {
	t.Parallel()
	db, a := stand.Stored(t, secondTask{State: "a"})
	for name, ahead := range map[string]time.Duration{"the same second": 0, "a writer whose clock is ahead": time.Hour} {
		stand.Must(t, db.Exec("UPDATE second_tasks SET version = ?", time.Now().Add(ahead).UTC()).Error)
		read := stand.Row[secondTask](t, db, a.ID)
		write := func(state string) error {
			return db.Model(&secondTask{}).Where("id = ?", a.ID).Clauses(gormlock.ExpectVersion(read.Version)).Update("state", state).Error
		}
		stand.Must(t, write("b"))
		stand.MustStale(t, write("lost"))
		if now := stand.Row[secondTask](t, db, a.ID); !now.Version.After(read.Version) {
			t.Errorf("%s: the version went from %s to %s", name, read.Version, now.Version)
		}
	}
}
