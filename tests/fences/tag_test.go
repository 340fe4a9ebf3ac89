package fences_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type bareReport struct {
	ID    int64
	Body  string
	Fence sql.NullInt64 `gormlock:"fence"`
	Lines []bareLine    `gorm:"foreignKey:ReportID"`
}

type bareLine struct {
	ID, ReportID int64
	Fence        int64 `gormlock:"fence"`
}

// V14: tokens of another key neither guard a row nor lock its holders out.
func TestV14_TokensOfOtherKeys(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&report{}, &reportNote{}, &bareReport{}, &bareLine{}})
	mine := stand.Issue(t, db, "report", 1)
	var other fence.Token
	for range 100 {
		other = stand.Issue(t, db, "invoice", 1)
	}
	r := report{Body: "mine"}
	stand.Must(t, stand.With(db, other, mine).Create(&r).Error)
	stand.Equal(t, "fence", r.Fence, mine.Number)
	mustMissToken(t, stand.With(db, other).Model(&r).Update("body", "other's").Error, "invoice/1#", `"report"`, "reports", "no token of a key")
	mustMissToken(t, stand.With(db, mine).Clauses(gormlock.Fence(other)).Model(&r).Update("body", "other's").Error, "Fence names no")
	stand.Equal(t, "stored", stand.Row[report](t, db, r.ID).Fence, mine.Number)
	for range 2 { // the next holders are not locked out
		mine = stand.Issue(t, db, "report", 1)
		stand.Must(t, stand.With(db, other, mine).Model(&r).Update("body", "mine").Error)
	}
	second := stand.Issue(t, db, "report", 2)
	err := stand.With(db, mine, second).Model(&r).Update("body", "whose?").Error
	mustMissToken(t, err, "2 tokens that fit", "report/1#", "report/2#", "Fence")
	stand.Must(t, stand.With(db, mine, second).Clauses(gormlock.Fence(mine)).Model(&r).Update("body", "mine").Error)
	mustMissToken(t, db.Clauses(gormlock.Fence(mine), gormlock.Fence(second)).Model(&r).Update("body", "whose?").Error, "2 tokens that fit")
	stale := issued(mine, mine.Number-1)
	stand.Must(t, db.Clauses(gormlock.Fence(stale), gormlock.Fence(mine)).Model(&r).Update("body", "the last one of a key").Error)

	// A bare fence takes the one token there is, and no token with another model's statement.
	b := bareReport{Body: "bare"}
	stand.Must(t, stand.With(db, other).Create(&b).Error)
	stand.Equal(t, "bare", b.Fence.Int64, other.Number)
	mustMissToken(t, stand.With(db, mine, other).Model(&b).Update("body", "whose?").Error, "2 tokens that fit")
	stand.Must(t, stand.With(db, mine, other).Clauses(gormlock.Fence(other)).Model(&b).Update("body", "other's").Error)
	b.Lines = []bareLine{{}}
	err = stand.With(db, other).Save(&b).Error
	mustMissToken(t, err, "bare_lines", "key=")
	stand.Must(t, stand.With(db, other).Omit(clause.Associations).Save(&b).Error)
	mustMissToken(t, stand.With(db, other).Model(&b).Association("Lines").Append(&bareLine{}), "bare_lines", "key=")
	stand.Must(t, stand.With(db, other).Create(&bareLine{ReportID: b.ID}).Error)
}

// wrong tags.
type (
	fenceString struct {
		ID    int64
		Fence string `gormlock:"fence"`
	}
	fenceInt32 struct {
		ID    int64
		Fence int32 `gormlock:"fence"`
	}
	fenceUint struct {
		ID    int64
		Fence uint64 `gormlock:"fence"`
	}
	fenceNullInt32 struct {
		ID    int64
		Fence sql.NullInt32 `gormlock:"fence"`
	}
	fenceInt4 struct {
		ID    int64
		Fence int64 `gorm:"type:integer" gormlock:"fence"`
	}
	fenceTwice struct {
		ID     int64
		Fence  int64 `gormlock:"fence"`
		Second int64 `gormlock:"fence,key=b"`
	}
	fenceWord struct {
		ID    int64
		Fence int64 `gormlock:"fence,report"`
	}
	fenceNoKey struct {
		ID    int64
		Fence int64 `gormlock:"fence,key="`
	}
	fenceTwoKeys struct {
		ID    int64
		Fence int64 `gormlock:"fence,key=a,key=b"`
	}
	fenceBoth struct {
		ID    int64
		Fence int64 `gormlock:"fence,version"`
	}
	fenceVersion struct {
		ID    int64
		Fence int64 `gormlock:"version,fence"`
	}
	fenceReadOnly struct {
		ID    int64
		Fence int64 `gorm:"->" gormlock:"fence"`
	}
	fenceIgnored struct {
		ID    int64
		Fence int64 `gorm:"-" gormlock:"fence"`
	}
	fenceKey struct {
		ID int64 `gorm:"primaryKey" gormlock:"fence"`
	}
	fenceKeyless struct {
		Fence int64 `gormlock:"fence"`
	}
	fenceTime struct {
		ID    int64
		Fence int64 `gorm:"autoUpdateTime" gormlock:"fence"`
	}
)

// A wrong tag is an error on the first use, of a read too, that names model, field and cure.
func TestFenceTags(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, nil)
	for _, wrong := range []struct {
		model any
		words string
	}{
		{&fenceString{}, "fenceString.Fence: a fence field must be an int64"},
		{&fenceInt32{}, "int64, a pointer to one or a sql.NullInt64, not int32"},
		{&fenceUint{}, "not uint64"},
		{&fenceNullInt32{}, "not sql.NullInt32"},
		{&fenceInt4{}, "tokens need 64 bits and the column is integer: give it the type bigint"},
		{&fenceTwice{}, "fenceTwice.Second: a second fence field beside Fence"},
		{&fenceWord{}, `unknown word "report" after fence: only key= may follow`},
		{&fenceNoKey{}, "key= names nothing"},
		{&fenceTwoKeys{}, `a second key "b"`},
		{&fenceBoth{}, `unknown word "version" after fence`},
		{&fenceVersion{}, `unknown mode "fence"`},
		{&fenceReadOnly{}, "a fence column must be readable and writable"},
		{&fenceIgnored{}, "a fence field must be a column"},
		{&fenceKey{}, "a fence field cannot be the primary key"},
		{&fenceKeyless{}, "a fenced model needs a primary key"},
		{&fenceTime{}, "cannot be a time that GORM sets"},
	} {
		for name, err := range map[string]error{
			"create": db.Create(wrong.model).Error,
			"first":  db.First(wrong.model).Error,
			"update": db.Model(wrong.model).Where("1=1").Updates(map[string]any{"fence": 1}).Error,
		} {
			if err == nil || !strings.Contains(err.Error(), wrong.words) {
				t.Errorf("%T %s: got %v, want %q", wrong.model, name, err, wrong.words)
			}
		}
	}
}

// The column is its token's: what else would write it, or would write past it, is refused.
func TestFenceIsWrittenByTokensAlone(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&report{}, &reportNote{}})
	token := stand.Issue(t, db, "report", 1)
	tx := stand.With(db, token)
	r := report{}
	stand.Must(t, tx.Create(&r).Error)
	ctx := tx.Statement.Context
	set := clause.Assignment{Column: clause.Column{Name: "fence"}, Value: 5}
	_, generic := gorm.G[report](tx).Where("id = 1").Set(set).Update(ctx)
	for name, err := range map[string]error{
		"Update":       tx.Model(&r).Update("fence", 5).Error,
		"by field":     tx.Model(&r).Update("Fence", 5).Error,
		"Updates":      tx.Model(&r).Updates(map[string]any{"body": "x", "fence": 5}).Error,
		"UpdateColumn": tx.Model(&r).UpdateColumn("fence", gorm.Expr("fence + 1")).Error,
		"create":       tx.Model(&report{}).Create(map[string]any{"fence": 5}).Error,
		"creates":      tx.Model(&report{}).Create(&[]map[string]any{{"body": "x"}, {"Fence": 5}}).Error,
		"Set":          generic,
	} {
		if err == nil || !strings.Contains(err.Error(), "report.Fence: a write cannot assign the fence") {
			t.Errorf("%s: %v", name, err)
		}
	}
	guard := gormlock.Fence(token)
	for name, err := range map[string]error{
		"Exec":     db.Clauses(guard).Exec("UPDATE reports SET body = 'x'").Error,
		"Raw":      db.Clauses(guard).Raw("UPDATE reports SET body = 'x' RETURNING id").Scan(&[]int64{}).Error,
		"no model": db.Clauses(guard).Table("reports").Where("1=1").Updates(map[string]any{"body": "x"}).Error,
		"no fence": db.Clauses(guard).Create(&reportNote{}).Error,
		"ignored":  db.Clauses(gormlock.IgnoreFence()).Create(&reportNote{}).Error,
		"both":     db.Clauses(guard, gormlock.IgnoreFence()).Create(&report{}).Error,
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	stand.Equal(t, "row", stand.Row[report](t, db, r.ID).Body, "")
	stand.Equal(t, "fence", stand.Row[report](t, db, r.ID).Fence, token.Number)
	// A struct's own field is what was read, never what is to be written.
	stand.Must(t, tx.Model(&r).Updates(report{Fence: 5}).Error)
	stand.Equal(t, "from a struct", stand.Row[report](t, db, r.ID).Fence, token.Number)
	// IgnoreFence may: a repair names the column.
	stand.Must(t, unguarded(db).Model(&r).Update("fence", 5).Error)
	stand.Equal(t, "repaired", stand.Row[report](t, db, r.ID).Fence, 5)
	r.Fence, r.Body = 3, "ignored"
	stand.Must(t, unguarded(db).Save(&r).Error)
	stand.Equal(t, "kept", stand.Row[report](t, db, r.ID).Fence, 5)
	stand.Equal(t, "saved", stand.Row[report](t, db, r.ID).Body, "ignored")
	if err := unguarded(db).Model(&r).Updates(report{Fence: 9}).Error; err == nil {
		t.Error("nothing is written, and no error")
	}
	stand.Must(t, db.Clauses(guard).First(&report{}, r.ID).Error)

	if err := pgtest.Open(t).Clauses(guard).Create(&report{}).Error; !errors.Is(err, gormlock.ErrNotInstalled) {
		t.Error(err)
	}
}

type fencedAccount struct {
	ID      int64
	Balance int64
	Version int64 `gormlock:"version"`
	Fence   int64 `gormlock:"fence,key=account"`
}

// A fence and a version on one model: each refuses what it is there for, and the fence first.
func TestFenceAndVersion(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&fencedAccount{}})
	token := stand.Issue(t, db, "account", 1)
	tx := stand.With(db, token)
	a := fencedAccount{Balance: 1}
	stand.Must(t, tx.Create(&a).Error)
	stand.Equal(t, "created", a, fencedAccount{1, 1, 1, token.Number})
	old := a
	stand.Must(t, tx.Model(&a).Update("balance", 2).Error)
	stand.Equal(t, "updated", a, fencedAccount{1, 2, 2, token.Number})
	stand.Equal(t, "stored", stand.Row[fencedAccount](t, db, 1), a)
	a.Balance = 3
	stand.Must(t, tx.Save(&a).Error)
	stand.Must(t, tx.Save([]*fencedAccount{&a}).Error)
	stand.Must(t, gormlock.Touch(tx, &a))
	stand.Must(t, tx.Clauses(stand.UpdateAll).Create(&a).Error)
	stand.Equal(t, "stored", stand.Row[fencedAccount](t, db, 1), a)
	stand.Equal(t, "version", a.Version, 6)
	for name, write := range map[string]func(tx *gorm.DB, a *fencedAccount) error{
		"update": func(tx *gorm.DB, a *fencedAccount) error { return tx.Model(a).Update("balance", 9).Error },
		"save":   func(tx *gorm.DB, a *fencedAccount) error { a.Balance = 9; return tx.Save(a).Error },
		"slice": func(tx *gorm.DB, a *fencedAccount) error {
			return tx.Model([]*fencedAccount{a}).Update("balance", 9).Error
		},
		"upsert": func(tx *gorm.DB, a *fencedAccount) error { a.Balance = 9; return tx.Save([]*fencedAccount{a}).Error },
		"delete": func(tx *gorm.DB, a *fencedAccount) error { return tx.Delete(a).Error },
		"touch":  func(tx *gorm.DB, a *fencedAccount) error { return gormlock.Touch(tx, a) },
		"bulk": func(tx *gorm.DB, _ *fencedAccount) error {
			return tx.Model(&fencedAccount{}).Where("id = 1").Clauses(gormlock.ExpectVersion(1)).Update("balance", 9).Error
		},
	} {
		stale, fresh := old, a
		stand.MustStale(t, write(tx, &stale))
		superseded := stand.With(db, issued(token, token.Number-1))
		if name != "bulk" {
			mustFenced(t, write(superseded, &fresh))
			fresh.Balance = a.Balance
			stand.Equal(t, name+": in memory", fresh, a)
		}
		stale = old
		mustFenced(t, write(superseded, &stale))
		mustMissToken(t, write(db, &stale))
		stand.Equal(t, name, stand.Row[fencedAccount](t, db, 1), a)
	}
	stand.Must(t, tx.Delete(&a).Error)
	stand.Equal(t, "gone", stand.MustBeStale(t, tx.Model(&a).Update("balance", 1).Error).Deleted, true)
	stand.Issue(t, db, "account", 1)
	mustFenced(t, tx.Model(&a).Update("balance", 1).Error)
}

// A condition of the caller's on an upsert stands beside the version's.
func TestV4_ConflictWithAConditionOfItsOwn(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&stand.Account{}}, func(t *testing.T, db *gorm.DB) {
		a := stand.Account{Balance: 1}
		stand.Must(t, db.Create(&a).Error)
		where := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"balance"}),
			Where: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "accounts.balance = 7"}, clause.Or(clause.Expr{SQL: "1=0"})}}}
		next := a
		next.Balance = 2
		stand.Must(t, db.Clauses(where).Create(&next).Error)
		stand.Equal(t, "left out", stand.Row[stand.Account](t, db, a.ID), a)
		where.Where.Exprs = append(where.Where.Exprs, clause.Or(clause.Expr{SQL: "1=1"}))
		stand.Must(t, db.Clauses(where).Create(&next).Error)
		stand.Equal(t, "written", stand.Row[stand.Account](t, db, a.ID).Balance, 2)
		stand.MustStale(t, db.Clauses(where).Create(&a).Error)
	})
}
