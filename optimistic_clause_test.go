package gormlock_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
)

type accountForm struct {
	Balance int64
	Version int64
}

// V13, H17: the version in a form, in a struct of another kind, in ExpectVersion.
func TestV13_ExpectedVersions(t *testing.T) {
	t.Parallel()
	onBoth(t, []any{&account{}}, expectedVersions)
}

func expectedVersions(t *testing.T, db *gorm.DB) {
	ctx := context.Background()
	a := account{Balance: 1}
	must(t, db.Create(&a).Error)
	must(t, db.Model(&a).Updates(accountForm{Balance: 2, Version: 1}).Error)
	equal(t, "form", a, row[account](t, db, a.ID))
	equal(t, "form", a.Version, 2)
	mustStale(t, db.Model(&a).Updates(accountForm{Balance: 3, Version: 1}).Error)
	equal(t, "form", a, row[account](t, db, a.ID))
	mustStale(t, db.Model(&a).Updates(&account{Balance: 3, Version: 1}).Error)
	must(t, db.Model(&a).Updates(account{Balance: 3, Version: 2}).Error)
	equal(t, "struct", a, row[account](t, db, a.ID))
	if err := db.Model(&a).Updates(map[string]any{"balance": 9, "version": 3}).Error; err == nil || errors.Is(err, gormlock.ErrStale) {
		t.Error("a map that names the version", err)
	}

	n, err := gorm.G[account](db, gormlock.ExpectVersion(3)).Where("id = ?", a.ID).Update(ctx, "balance", 4)
	must(t, err)
	equal(t, "rows", n, 1)
	_, err = gorm.G[account](db, gormlock.ExpectVersion(3)).Where("id = ?", a.ID).Update(ctx, "balance", 5)
	stale := mustBeStale(t, err)
	equal[any](t, "key", stale.PrimaryKey["id"], a.ID)
	equal[any](t, "actual", stale.Actual, int64(4))
	_, err = gorm.G[account](db, gormlock.ExpectVersion(3)).Where("id = ?", a.ID).Set(clause.Assignment{Column: clause.Column{Name: "balance"}, Value: 6}).Update(ctx)
	mustStale(t, err)
	_, err = gorm.G[account](db).Scopes(gormlock.ExpectVersion(3).ModifyStatement).Where("id = ?", a.ID).Delete(ctx)
	mustStale(t, err)
	_, err = gorm.G[account](db).Where("id = ?", a.ID).Set(clause.Assignment{Column: clause.Column{Name: "balance"}, Value: 6}).Update(ctx)
	must(t, err)
	equal(t, "Set().Update bumps", row[account](t, db, a.ID).Version, 5)
	_, err = gorm.G[account](db).Updates(ctx, account{ID: a.ID, Balance: 7, Version: 4})
	mustStale(t, err)
	_, err = gorm.G[account](db).Updates(ctx, account{ID: a.ID, Balance: 7, Version: 5})
	must(t, err)
	equal(t, "by value", row[account](t, db, a.ID), account{ID: a.ID, Balance: 7, Version: 6})

	// The caller's own condition: nothing written, no error, the struct as it was.
	must(t, db.First(&a, a.ID).Error)
	res := db.Model(&a).Where("balance > 1000").Update("balance", 8)
	must(t, res.Error)
	equal(t, "rows", res.RowsAffected, 0)
	equal(t, "struct", a, row[account](t, db, a.ID))
	a.Balance = 9
	if err := db.Where("balance > 1000").Save(&a).Error; !errors.Is(err, gorm.ErrRecordNotFound) {
		t.Error("save", err)
	}
	// G13: no predicate of ours makes up for a missing condition.
	if err := db.Model(&account{}).Clauses(gormlock.ExpectVersion(6)).Update("balance", 0).Error; !errors.Is(err, gorm.ErrMissingWhereClause) {
		t.Error("guard", err)
	}
	if err := db.Model(&account{Version: 6}).Update("balance", 0).Error; !errors.Is(err, gorm.ErrMissingWhereClause) {
		t.Error("guard", err)
	}
	// R9, H5: nothing is SET.
	old := row[account](t, db, a.ID)
	old.Version = 1
	must(t, db.Model(&old).Updates(&account{}).Error)
	must(t, db.Model(&old).Updates(map[string]any{}).Error)
	must(t, db.Updates(&account{ID: a.ID, Version: 1}).Error)
	equal(t, "nothing", row[account](t, db, a.ID).Version, 6)
	// OR in the caller's conditions.
	mustStale(t, db.Model(&old).Where("balance = 7").Or("balance = 8").Update("balance", 10).Error)

	b := row[account](t, db, a.ID)
	b.Version = 3
	must(t, db.Model(&b).Clauses(gormlock.IgnoreVersion()).Update("balance", 11).Error)
	equal(t, "ignored", row[account](t, db, a.ID), account{ID: a.ID, Balance: 11, Version: 7})
	equal(t, "counts on", b.Version, 4)
	must(t, db.Clauses(gormlock.IgnoreVersion()).Delete(&account{ID: a.ID}).Error)
}

type plainRow struct {
	ID   int64
	Name *string
	At   time.Time
	Doc  json.RawMessage `gorm:"type:json"`
	Blob []byte
	N    int
}

func TestIfUnchanged(t *testing.T) {
	t.Parallel()
	onBoth(t, []any{&plainRow{}}, ifUnchanged)
}

func ifUnchanged(t *testing.T, db *gorm.DB) {
	must(t, db.Create(&plainRow{At: time.Now(), Doc: json.RawMessage(`{"a": 1, "b": 2}`), Blob: []byte{1, 0, 2}}).Error)
	before := row[plainRow](t, db, 1)
	must(t, db.Model(&plainRow{ID: 1}).Clauses(gormlock.IfUnchanged(&before)).Update("n", 1).Error)
	e := mustBeStale(t, db.Model(&plainRow{ID: 1}).Clauses(gormlock.IfUnchanged(&before)).Update("n", 2).Error)
	if !strings.HasSuffix(e.Error(), "id=1: one of id, name, at, doc, blob, n changed since it was read") {
		t.Error(e)
	}
	if e.Deleted {
		t.Error(e)
	}
	equal(t, "n", row[plainRow](t, db, 1).N, 1)
	for _, column := range []string{"name", "at", "Doc", "Blob"} {
		must(t, db.Model(&plainRow{ID: 1}).Clauses(gormlock.IfUnchanged(&before, column)).Update("n", 3).Error)
	}
	name := "x"
	must(t, db.Model(&plainRow{ID: 1}).Updates(plainRow{Name: &name, At: time.Now().Add(time.Hour), Doc: json.RawMessage(`{}`), Blob: []byte{3}}).Error)
	for _, column := range []string{"name", "at", "doc", "blob"} {
		mustStale(t, db.Model(&plainRow{ID: 1}).Clauses(gormlock.IfUnchanged(&before, column)).Update("n", 4).Error)
		mustStale(t, db.Clauses(gormlock.IfUnchanged(&before, column)).Delete(&plainRow{ID: 1}).Error)
	}
	must(t, db.Delete(&plainRow{}, 1).Error)
	equal(t, "gone", mustBeStale(t, db.Model(&plainRow{ID: 1}).Clauses(gormlock.IfUnchanged(&before, "n")).Update("n", 4).Error).Deleted, true)
	if err := db.Model(&plainRow{ID: 1}).Clauses(gormlock.ExpectVersion(1)).Update("n", 4).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
		t.Error(err)
	}
}

type pointerRow struct {
	ID   int64
	Name *string
	Blob []byte
}

// What is compared is what was there when IfUnchanged was called, whatever the struct's pointers lead to since.
func TestIfUnchanged_keepsWhatIsBehindPointers(t *testing.T) {
	t.Parallel()
	db := versioned(t, []any{&pointerRow{}})
	name := "old"
	a := pointerRow{Name: &name, Blob: []byte{1}}
	must(t, db.Create(&a).Error)
	must(t, db.Model(&a).Clauses(gormlock.IfUnchanged(&a, "name")).Update("name", "new").Error)
	equal(t, "written", *row[pointerRow](t, db, a.ID).Name, "new")
	unchanged := gormlock.IfUnchanged(&a)
	a.Blob[0], *a.Name = 2, "newer"
	must(t, db.Model(&pointerRow{ID: a.ID}).Clauses(unchanged).Updates(a).Error)
	*a.Name = "newest"
	mustStale(t, db.Model(&pointerRow{ID: a.ID}).Clauses(unchanged).Updates(a).Error)
}

type railsForm struct {
	Name        string
	LockVersion int64
}

type railsPatch struct {
	Name        string
	LockVersion *int64
}

// R8, H17: where rows begin at version 0, a form that was rendered then holds 0, and that is its version. One that may
// come without a version has a pointer.
func TestR8_FormAtVersionZero(t *testing.T) {
	t.Parallel()
	db := versioned(t, []any{&railsRow{}})
	a := railsRow{Name: "a"}
	must(t, db.Create(&a).Error)
	must(t, db.Model(&a).Updates(railsForm{Name: "first"}).Error)
	before := a
	mustStale(t, db.Model(&a).Updates(railsForm{Name: "lost"}).Error)
	equal(t, "struct", a, before)
	mustStale(t, db.Model(&railsRow{}).Where("id = ?", a.ID).Updates(railsForm{Name: "lost"}).Error)
	equal(t, "row", row[railsRow](t, db, a.ID), before)
	must(t, db.Model(&a).Updates(railsForm{Name: "second", LockVersion: 1}).Error)
	must(t, db.Model(&a).Updates(railsPatch{Name: "third"}).Error)
	zero := int64(0)
	mustStale(t, db.Model(&a).Updates(railsPatch{Name: "lost", LockVersion: &zero}).Error)
	must(t, db.Model(&a).Updates(railsRow{Name: "fourth"}).Error) // a struct of the model itself: zero is not given
	equal(t, "row", row[railsRow](t, db, a.ID), a)
}

type stamped struct {
	ID        int64
	Name      string
	Items     []stampedItem `gorm:"foreignKey:StampedID"`
	UpdatedAt time.Time
	Version   int64 `gormlock:"version"`
}

type stampedItem struct {
	ID, StampedID int64
}

// V13: association mode writes the time of the update alone: the version moves, and it is compared only if it is known.
func TestV13_OnlyTheUpdateTime(t *testing.T) {
	t.Parallel()
	onBoth(t, []any{&stamped{}, &stampedItem{}}, onlyTheUpdateTime)
}

func onlyTheUpdateTime(t *testing.T, db *gorm.DB) {
	s := stamped{Name: "a"}
	must(t, db.Create(&s).Error)
	old := s
	must(t, db.Model(&s).Association("Items").Append(&stampedItem{}))
	equal(t, "loaded", s.Version, 2)
	unloaded := stamped{ID: s.ID}
	must(t, db.Model(&unloaded).Association("Items").Append(&stampedItem{}))
	equal(t, "unloaded", unloaded.Version, 0)
	equal(t, "row", row[stamped](t, db, s.ID).Version, 3)
	mustStale(t, db.Model(&old).Association("Items").Append(&stampedItem{}))
	var items int64
	must(t, db.Model(&stampedItem{}).Count(&items).Error)
	equal(t, "items", items, 2)
}

// What asks for nothing is an error, as with a row lock.
func TestAClauseThatNobodyMade(t *testing.T) {
	t.Parallel()
	db := onSQLite(t, []any{&account{}})
	for _, empty := range []clause.Expression{gormlock.VersionClause{}, gormlock.FenceClause{}} {
		if err := db.Clauses(empty).Create(&account{}).Error; !errors.Is(err, gormlock.ErrOption) {
			t.Errorf("%T: %v", empty, err)
		}
	}
}
