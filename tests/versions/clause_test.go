package versions_test

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
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type accountForm struct {
	Balance int64
	Version int64
}

// V13, H17: the version in a form, in a struct of another kind, in ExpectVersion.
func TestV13_ExpectedVersions(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&stand.Account{}}, expectedVersions)
}

func expectedVersions(t *testing.T, db *gorm.DB) {
	ctx := context.Background()
	a := stand.Made(t, db, stand.Account{Balance: 1})
	stand.Must(t, db.Model(&a).Updates(accountForm{Balance: 2, Version: 1}).Error)
	stand.Equal(t, "form", a, stand.Row[stand.Account](t, db, a.ID))
	stand.Equal(t, "form", a.Version, 2)
	stand.MustStale(t, db.Model(&a).Updates(accountForm{Balance: 3, Version: 1}).Error)
	stand.Equal(t, "form", a, stand.Row[stand.Account](t, db, a.ID))
	stand.MustStale(t, db.Model(&a).Updates(&stand.Account{Balance: 3, Version: 1}).Error)
	stand.Must(t, db.Model(&a).Updates(stand.Account{Balance: 3, Version: 2}).Error)
	stand.Equal(t, "struct", a, stand.Row[stand.Account](t, db, a.ID))
	stand.MustStale(t, db.Model(&a).Updates(map[string]any{"balance": 9, "version": 2}).Error)
	stand.Equal(t, "a map that names another version", a, stand.Row[stand.Account](t, db, a.ID))

	n, err := gorm.G[stand.Account](db, gormlock.ExpectVersion(3)).Where("id = ?", a.ID).Update(ctx, "balance", 4)
	stand.Must(t, err)
	stand.Equal(t, "rows", n, 1)
	_, err = gorm.G[stand.Account](db, gormlock.ExpectVersion(3)).Where("id = ?", a.ID).Update(ctx, "balance", 5)
	stale := stand.MustBeStale(t, err)
	stand.Equal[any](t, "key", stale.PrimaryKey["id"], a.ID)
	stand.Equal[any](t, "actual", stale.Actual, int64(4))
	_, err = gorm.G[stand.Account](db, gormlock.ExpectVersion(3)).Where("id = ?", a.ID).Set(clause.Assignment{Column: clause.Column{Name: "balance"}, Value: 6}).Update(ctx)
	stand.MustStale(t, err)
	_, err = gorm.G[stand.Account](db).Scopes(gormlock.ExpectVersion(3).ModifyStatement).Where("id = ?", a.ID).Delete(ctx)
	stand.MustStale(t, err)
	_, err = gorm.G[stand.Account](db).Where("id = ?", a.ID).Set(clause.Assignment{Column: clause.Column{Name: "balance"}, Value: 6}).Update(ctx)
	stand.Must(t, err)
	stand.Equal(t, "Set().Update bumps", stand.Row[stand.Account](t, db, a.ID).Version, 5)
	_, err = gorm.G[stand.Account](db).Updates(ctx, stand.Account{ID: a.ID, Balance: 7, Version: 4})
	stand.MustStale(t, err)
	_, err = gorm.G[stand.Account](db).Updates(ctx, stand.Account{ID: a.ID, Balance: 7, Version: 5})
	stand.Must(t, err)
	stand.Equal(t, "by value", stand.Row[stand.Account](t, db, a.ID), stand.Account{ID: a.ID, Balance: 7, Version: 6})

	// The caller's own condition: nothing written, no error, the struct as it was.
	stand.Must(t, db.First(&a, a.ID).Error)
	res := db.Model(&a).Where("balance > 1000").Update("balance", 8)
	stand.Must(t, res.Error)
	stand.Equal(t, "rows", res.RowsAffected, 0)
	stand.Equal(t, "struct", a, stand.Row[stand.Account](t, db, a.ID))
	a.Balance = 9
	if err := db.Where("balance > 1000").Save(&a).Error; !errors.Is(err, gorm.ErrRecordNotFound) {
		t.Error("save", err)
	}
	// G13: no predicate of ours makes up for a missing condition.
	if err := db.Model(&stand.Account{}).Clauses(gormlock.ExpectVersion(6)).Update("balance", 0).Error; !errors.Is(err, gorm.ErrMissingWhereClause) {
		t.Error("guard", err)
	}
	if err := db.Model(&stand.Account{Version: 6}).Update("balance", 0).Error; !errors.Is(err, gorm.ErrMissingWhereClause) {
		t.Error("guard", err)
	}
	// R9, H5: nothing is SET.
	old := stand.Row[stand.Account](t, db, a.ID)
	old.Version = 1
	stand.Must(t, db.Model(&old).Updates(&stand.Account{}).Error)
	stand.Must(t, db.Model(&old).Updates(map[string]any{}).Error)
	stand.MustStale(t, db.Updates(&stand.Account{ID: a.ID, Version: 1}).Error) // V23: a version that comes along is compared
	stand.MustStale(t, db.Model(&old).Select("version").Updates(&old).Error)
	stand.Must(t, db.Updates(&stand.Account{ID: a.ID, Version: 6}).Error)
	stand.Equal(t, "nothing", stand.Row[stand.Account](t, db, a.ID).Version, 6)
	// OR in the caller's conditions.
	stand.MustStale(t, db.Model(&old).Where("balance = 7").Or("balance = 8").Update("balance", 10).Error)

	b := stand.Row[stand.Account](t, db, a.ID)
	b.Version = 3
	stand.Must(t, db.Model(&b).Clauses(gormlock.IgnoreVersion()).Update("balance", 11).Error)
	stand.Equal(t, "ignored", stand.Row[stand.Account](t, db, a.ID), stand.Account{ID: a.ID, Balance: 11, Version: 7})
	stand.Equal(t, "counts on", b.Version, 4)
	stand.Must(t, db.Clauses(gormlock.IgnoreVersion()).Delete(&stand.Account{ID: a.ID}).Error)
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
	stand.OnEachAndMySQL(t, []any{&plainRow{}}, ifUnchanged)
}

func ifUnchanged(t *testing.T, db *gorm.DB) {
	stand.Must(t, db.Create(&plainRow{At: time.Now(), Doc: json.RawMessage(`{"a": 1, "b": 2}`), Blob: []byte{1, 0, 2}}).Error)
	before := stand.Row[plainRow](t, db, 1)
	stand.Must(t, db.Model(&plainRow{ID: 1}).Clauses(gormlock.IfUnchanged(&before)).Update("n", 1).Error)
	e := stand.MustBeStale(t, db.Model(&plainRow{ID: 1}).Clauses(gormlock.IfUnchanged(&before)).Update("n", 2).Error)
	if !strings.HasSuffix(e.Error(), "id=1: one of id, name, at, doc, blob, n changed since it was read") {
		t.Error(e)
	}
	if e.Deleted {
		t.Error(e)
	}
	stand.Equal(t, "n", stand.Row[plainRow](t, db, 1).N, 1)
	for _, column := range []string{"name", "at", "Doc", "Blob"} {
		stand.Must(t, db.Model(&plainRow{ID: 1}).Clauses(gormlock.IfUnchanged(&before, column)).Update("n", 3).Error)
	}
	name := "x"
	stand.Must(t, db.Model(&plainRow{ID: 1}).Updates(plainRow{Name: &name, At: time.Now().Add(time.Hour), Doc: json.RawMessage(`{}`), Blob: []byte{3}}).Error)
	for _, column := range []string{"name", "at", "doc", "blob"} {
		stand.MustStale(t, db.Model(&plainRow{ID: 1}).Clauses(gormlock.IfUnchanged(&before, column)).Update("n", 4).Error)
		stand.MustStale(t, db.Clauses(gormlock.IfUnchanged(&before, column)).Delete(&plainRow{ID: 1}).Error)
	}
	stand.Must(t, db.Delete(&plainRow{}, 1).Error)
	stand.Equal(t, "gone", stand.MustBeStale(t, db.Model(&plainRow{ID: 1}).Clauses(gormlock.IfUnchanged(&before, "n")).Update("n", 4).Error).Deleted, true)
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
	db := stand.Versioned(t, []any{&pointerRow{}})
	name := "old"
	a := stand.Made(t, db, pointerRow{Name: &name, Blob: []byte{1}})
	stand.Must(t, db.Model(&a).Clauses(gormlock.IfUnchanged(&a, "name")).Update("name", "new").Error)
	stand.Equal(t, "written", *stand.Row[pointerRow](t, db, a.ID).Name, "new")
	unchanged := gormlock.IfUnchanged(&a)
	a.Blob[0], *a.Name = 2, "newer"
	stand.Must(t, db.Model(&pointerRow{ID: a.ID}).Clauses(unchanged).Updates(a).Error)
	*a.Name = "newest"
	stand.MustStale(t, db.Model(&pointerRow{ID: a.ID}).Clauses(unchanged).Updates(a).Error)
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
	db, a := stand.Stored(t, railsRow{Name: "a"})
	stand.Must(t, db.Model(&a).Updates(railsForm{Name: "first"}).Error)
	before := a
	stand.MustStale(t, db.Model(&a).Updates(railsForm{Name: "lost"}).Error)
	stand.Equal(t, "struct", a, before)
	stand.MustStale(t, db.Model(&railsRow{}).Where("id = ?", a.ID).Updates(railsForm{Name: "lost"}).Error)
	stand.Equal(t, "row", stand.Row[railsRow](t, db, a.ID), before)
	stand.Must(t, db.Model(&a).Updates(railsForm{Name: "second", LockVersion: 1}).Error)
	stand.Must(t, db.Model(&a).Updates(railsPatch{Name: "third"}).Error)
	zero := int64(0)
	stand.MustStale(t, db.Model(&a).Updates(railsPatch{Name: "lost", LockVersion: &zero}).Error)
	stand.Must(t, db.Model(&a).Updates(railsRow{Name: "fourth"}).Error) // a struct of the model itself: zero is not given
	stand.Equal(t, "row", stand.Row[railsRow](t, db, a.ID), a)
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
	stand.OnEachAndMySQL(t, []any{&stamped{}, &stampedItem{}}, onlyTheUpdateTime)
}

func onlyTheUpdateTime(t *testing.T, db *gorm.DB) {
	s := stand.Made(t, db, stamped{Name: "a"})
	old := s
	stand.Must(t, db.Model(&s).Association("Items").Append(&stampedItem{}))
	stand.Equal(t, "loaded", s.Version, 2)
	unloaded := stamped{ID: s.ID}
	stand.Must(t, db.Model(&unloaded).Association("Items").Append(&stampedItem{}))
	stand.Equal(t, "unloaded", unloaded.Version, 0)
	stand.Equal(t, "row", stand.Row[stamped](t, db, s.ID).Version, 3)
	stand.MustStale(t, db.Model(&old).Association("Items").Append(&stampedItem{}))
	var items int64
	stand.Must(t, db.Model(&stampedItem{}).Count(&items).Error)
	stand.Equal(t, "items", items, 2)
}

// What asks for nothing is an error, as with a row lock.
func TestAClauseThatNobodyMade(t *testing.T) {
	t.Parallel()
	db := stand.OnSQLite(t, []any{&stand.Account{}})
	for _, empty := range []clause.Expression{gormlock.VersionClause{}, gormlock.FenceClause{}} {
		if err := db.Clauses(empty).Create(&stand.Account{}).Error; !errors.Is(err, gormlock.ErrOption) {
			t.Errorf("%T: %v", empty, err)
		}
	}
}
