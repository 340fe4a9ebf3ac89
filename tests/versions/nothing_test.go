package versions_test

import (
	"context"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// An update that asks for something of which nothing is left is an error: GORM sends no statement and returns nil, even if the
// struct is stale.
func TestUpdate_ofWhichNothingIsLeft(t *testing.T) {
	t.Parallel()
	type typo struct{ Balanze int64 }
	type half struct{ Balance, Blance int64 }
	type timed struct {
		ID        int64
		Balance   int64
		Note      string
		Version   int64 `gorm:"not null;default:1" gormlock:"version"`
		UpdatedAt time.Time
		Memo      string `gorm:"-"`
	}
	type scanned struct {
		Balance int64
		Extra   int64 `gorm:"->"`
	}
	ctx := context.Background()
	stand.OnBoth(t, []any{&timed{}, &stand.LinedOrder{}, &stand.LinedLine{}, &chamber{}, &attic{}}, func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Create(&timed{ID: 1, Balance: 10, Note: "old"}).Error)
		a := stand.Row[timed](t, db, 1)
		stand.Must(t, db.Create(&stand.LinedOrder{ID: 1, Title: "a"}).Error)
		o := stand.Row[stand.LinedOrder](t, db, 1)
		for name, err := range map[string]error{
			"Select, Update":              db.Model(&a).Select("note").Update("balance", 5).Error,
			"Select, map":                 db.Model(&a).Select("note").Updates(map[string]any{"balance": 5}).Error,
			"Select, name of field":       db.Model(&a).Select("Note").Updates(map[string]any{"Balance": 5}).Error,
			"Select, bulk":                db.Model(&timed{}).Where("id = 1").Select("note").Update("balance", 5).Error,
			"Select, UpdateColumn":        db.Model(&a).Select("note").UpdateColumn("balance", 5).Error,
			"Omit, Update":                db.Model(&a).Omit("balance").Update("balance", 5).Error,
			"Omit, struct":                db.Model(&a).Omit("Balance").Updates(timed{Balance: 5}).Error,
			"Omit, itself":                db.Omit("Balance", "note").Updates(&timed{ID: 1, Balance: 5, Version: 1}).Error,
			"Save of its key":             db.Select("id").Save(&a).Error,
			"form":                        db.Model(&a).Updates(typo{5}).Error,
			"form, a part":                db.Model(&a).Updates(&half{0, 5}).Error,
			"form, both":                  db.Model(&a).Updates(half{5, 5}).Error,
			"form, left out":              db.Model(&a).Select("note").Omit("note").Updates(half{Balance: 5}).Error,
			"gorm.G":                      stand.ErrorOf(gorm.G[timed](db).Where("id = 1").Select("note").Update(ctx, "balance", 5)),
			"gorm.G, Updates":             stand.ErrorOf(gorm.G[timed](db).Where("id = 1").Omit("balance").Updates(ctx, timed{Balance: 5})),
			"gorm.G, Select of the key":   stand.ErrorOf(gorm.G[timed](db, gormlock.IgnoreVersion()).Select("id").Updates(ctx, timed{ID: 1, Balance: 5, Version: 1})),
			"gorm.G, Distinct":            stand.ErrorOf(gorm.G[timed](db, gormlock.IgnoreVersion()).Distinct("id").Updates(ctx, timed{ID: 1, Balance: 5, Version: 1})),
			"gorm.G, compared":            stand.ErrorOf(gorm.G[timed](db).Select("id").Updates(ctx, timed{ID: 1, Balance: 5, Version: 1})),
			"Select of the key, by value": db.Clauses(gormlock.IgnoreVersion()).Select("id").Updates(timed{ID: 1, Balance: 5, Version: 1}).Error,
			"Select of the key, of it":    db.Model(&a).Select("id").Updates(timed{ID: 1, Balance: 5}).Error,
			"Select of the key, a form":   db.Model(&a).Select("id").Updates(struct{ ID, Balance int64 }{1, 5}).Error,
			"Select of an association":    db.Model(&o).Select("Lines").Update("title", "b").Error,
			"Select of associations":      db.Model(&o).Select(clause.Associations).Updates(stand.LinedOrder{Title: "b"}).Error,
			"a form, all of it":           db.Model(&a).Select("*").Updates(typo{5}).Error,
			"Select of the version":       db.Model(&a).Select("version").Updates(timed{Balance: 5, Version: 1}).Error,
			"Select of the version, map":  db.Model(&a).Select("version").Updates(map[string]any{"balance": 5, "version": 1}).Error,
			"Select of the version, Save": db.Select("version").Save(&a).Error,
			"a field that is no column":   db.Model(&a).Update("Memo", "x").Error,
			"beside one that is":          db.Model(&a).Updates(map[string]any{"Memo": "x", "balance": 5}).Error,
			"nil for an association":      db.Model(&attic{ID: 1, Version: 1}).Update("Room", nil).Error,
			"ExpectVersion":               db.Model(&a).Clauses(gormlock.ExpectVersion(1)).Select("note").Update("balance", 5).Error,
		} {
			if err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		now := stand.Row[timed](t, db, 1)
		stand.Equal(t, "balance", now.Balance, 10)
		stand.Equal(t, "version", now.Version, 1)
		stand.Equal(t, "note", now.Note, "old")
		for name, err := range map[string]error{
			"nothing is asked for":   db.Model(&a).Updates(timed{}).Error,
			"an empty map":           db.Model(&a).Select("note").Updates(map[string]any{}).Error,
			"a form that Scan fills": db.Model(&a).Updates(scanned{Balance: 10, Extra: 3}).Error,
			"a time, without hooks":  db.Model(&a).Omit("note").UpdateColumns(timed{Note: "x", UpdatedAt: time.Now()}).Error,
			"an empty form":          db.Model(&a).Updates(typo{}).Error,
			"a part of a map":        db.Model(&a).Select("note").Updates(map[string]any{"note": "new", "balance": 5}).Error,
			"a zero":                 db.Model(&a).Select("note").Updates(timed{Balance: 5}).Error,
			"a form left out":        db.Model(&a).Select("balance").Updates(half{10, 5}).Error,
			"Save of a column":       db.Select("balance").Save(&a).Error,
			"Save without one":       db.Omit("note").Save(&a).Error,
			"times":                  db.Model(&a).Select("updated_at").Updates(timed{}).Error,
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		now = stand.Row[timed](t, db, 1)
		stand.Equal(t, "balance", now.Balance, 10)
	})
}

// DO NOTHING compares and overwrites nothing, so the same structs may be given to it again, wherever versions start.
func TestUpsert_doNothingTwice(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&stand.RailsTask{}, &stand.Account{}}, func(t *testing.T, db *gorm.DB) {
		skip := clause.OnConflict{DoNothing: true}
		stand.Must(t, db.Create(&stand.RailsTask{ID: 1, State: "stored"}).Error)
		stand.Must(t, db.Create(&stand.Account{ID: 1, Balance: 7}).Error)
		tasks, accounts := []stand.RailsTask{{ID: 1}, {ID: 2}}, []stand.Account{{ID: 1}, {ID: 2}}
		for range 3 {
			stand.Must(t, db.Clauses(skip).Create(&tasks).Error)
			stand.Must(t, db.Clauses(skip).Create(&tasks[0]).Error)
			stand.Must(t, db.Clauses(skip).Create(&accounts).Error)
		}
		stand.Equal(t, "task", stand.Row[stand.RailsTask](t, db, 1).State, "stored")
		stand.Equal(t, "account", stand.Row[stand.Account](t, db, 1).Balance, 7)
		stand.MustBeUnread(t, db.Save(&tasks[0]).Error)
		stand.Must(t, db.Delete(&stand.RailsTask{}, 1).Error)
		stand.Must(t, db.Clauses(skip).Create(&tasks[0]).Error) // its row is gone: it is a new one
		stand.Equal(t, "stored anew", tasks[0], stand.Row[stand.RailsTask](t, db, 1))
	})
}
