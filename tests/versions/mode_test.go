package versions_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type railsRow struct {
	ID          int64
	Name        string
	LockVersion int64 `gorm:"type:integer" gormlock:"version,rails"`
}

type railsNull struct {
	ID          int64
	Name        string
	LockVersion sql.NullInt32 `gorm:"type:integer" gormlock:"version,rails"`
}

func (railsNull) TableName() string { return "rails_rows" }

func TestRails(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&railsRow{}}, rails)
}

func rails(t *testing.T, db *gorm.DB) {
	a := stand.Made(t, db, railsRow{Name: "a"})
	stand.Equal(t, "R1", stand.Row[railsNull](t, db, a.ID).LockVersion, sql.NullInt32{Int32: 0, Valid: true})
	b := stand.Made(t, db, railsRow{LockVersion: 42})
	stand.Equal(t, "R2", stand.Row[railsRow](t, db, b.ID).LockVersion, 42)
	many := []railsRow{{}, {}}
	stand.Must(t, db.Omit("lock_version").Create(&many).Error)
	stand.Must(t, db.Model(&railsRow{}).Create(map[string]any{"name": "map"}).Error)
	var nulls int64
	stand.Must(t, db.Model(&railsRow{}).Where("lock_version IS NULL").Count(&nulls).Error)
	stand.Equal(t, "R3", nulls, 0)

	stand.Must(t, db.Model(&a).Update("name", "b").Error)
	stand.Equal(t, "R5", a, stand.Row[railsRow](t, db, a.ID))
	stand.Equal(t, "R5", a.LockVersion, 1)
	zero := railsRow{ID: a.ID, Name: "zero"}
	e := stand.MustBeStale(t, db.Save(&zero).Error)
	stand.Equal[any](t, "R6", e.Expected, int64(0))
	stand.Equal(t, "never inserts", stand.MustBeStale(t, db.Save(&railsRow{ID: 999}).Error).Deleted, true)
	stand.Equal(t, "R26", (&railsRow{}).LockVersion, 0)

	stand.Must(t, db.Exec("UPDATE rails_rows SET lock_version = NULL WHERE id = ?", b.ID).Error)
	var c railsNull
	stand.Must(t, db.First(&c, b.ID).Error)
	stand.Equal(t, "R4", c.LockVersion.Valid, false)
	d, e4 := c, railsRow{}
	stand.Must(t, db.First(&e4, b.ID).Error)
	stand.Must(t, db.Model(&c).Update("name", "c").Error)
	stand.Equal(t, "R7", c.LockVersion, sql.NullInt32{Int32: 1, Valid: true})
	stand.Equal(t, "R7", stand.Row[railsNull](t, db, b.ID), c)
	stand.MustStale(t, db.Model(&d).Update("name", "d").Error)
	stand.MustStale(t, db.Model(&e4).Update("name", "d").Error)

	stand.Must(t, db.Model(&a).Updates(map[string]any{"name": "r8", "lock_version": 1}).Error)
	stand.Equal(t, "R8", a, stand.Row[railsRow](t, db, a.ID))
	stand.Equal(t, "R8", a.LockVersion, 2)
	stand.MustStale(t, db.Model(&a).Updates(map[string]any{"name": "r8", "LockVersion": int32(1)}).Error)
	stand.Equal(t, "R8", a, stand.Row[railsRow](t, db, a.ID))
	if err := db.Model(&a).Updates(map[string]any{"name": "x", "lock_version": nil}).Error; err == nil || errors.Is(err, gormlock.ErrStale) {
		t.Error("R10", err)
	}
	stand.Must(t, gormlock.Touch(db, &a))
	stand.Equal(t, "R14a", stand.Row[railsRow](t, db, a.ID).LockVersion, 3)
	stand.Must(t, db.Model(&railsRow{}).Where("id = ?", a.ID).UpdateColumn("name", gorm.Expr("name || 'x'")).Error)
	stand.Equal(t, "R16", stand.Row[railsRow](t, db, a.ID).LockVersion, 4)
	stand.Must(t, db.Exec("UPDATE rails_rows SET lock_version = NULL WHERE id = ?", b.ID).Error)
	stand.Must(t, db.Model(&railsRow{}).Where("id = ?", b.ID).Update("name", "x").Error)
	stand.Equal(t, "R18", stand.Row[railsRow](t, db, b.ID).LockVersion, 1)
	stand.MustStale(t, db.Delete(&a).Error)
	stand.Equal(t, "R22", db.Delete(&railsRow{ID: b.ID, LockVersion: 1}).Error, nil)
	stand.Equal(t, "R22", stand.MustBeStale(t, db.Delete(&railsRow{ID: b.ID, LockVersion: 1}).Error).Deleted, true)

	stand.Must(t, db.Exec("UPDATE rails_rows SET lock_version = 2147483647 WHERE id = ?", a.ID).Error)
	stand.Must(t, db.First(&a, a.ID).Error)
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Model(&a).Update("name", "x").Error; err == nil || !strings.Contains(err.Error(), "2147483647") {
			t.Error("R27", err)
		}
		return tx.Model(&many[0]).Update("name", "usable").Error
	}))
}

type javaRow struct {
	ID      int64
	Name    string
	Views   int    `gormlock:"unversioned"`
	Version *int16 `gormlock:"version,hibernate"`
}

func TestHibernate(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&javaRow{}, &javaTime{}}, hibernate)
}

func hibernate(t *testing.T, db *gorm.DB) {
	a := stand.Made(t, db, javaRow{})
	stand.Equal(t, "H1", *a.Version, 0)
	negative := int16(-1)
	b := stand.Made(t, db, javaRow{Version: &negative})
	stand.Equal(t, "H2", *stand.Row[javaRow](t, db, b.ID).Version, 0)
	stand.Equal(t, "H2", *b.Version, 0)
	stand.Must(t, db.Model(&a).Update("name", "x").Error)
	stand.Equal(t, "H4", *a.Version, 1)
	stand.Must(t, db.Model(&a).Update("views", 1).Error)
	stand.Equal(t, "H7", *stand.Row[javaRow](t, db, a.ID).Version, 1)
	stale := a
	zero := int16(0)
	stale.Version = &zero
	stand.MustStale(t, db.Model(&stale).Update("views", 2).Error)
	stand.Must(t, gormlock.Touch(db, &a))
	stand.Equal(t, "H12", *stand.Row[javaRow](t, db, a.ID).Version, 2)
	stand.Must(t, db.Model(&javaRow{}).Where("id = ?", a.ID).Update("name", "y").Error)
	stand.Equal(t, "H11", *stand.Row[javaRow](t, db, a.ID).Version, 3)
	stand.MustStale(t, db.Delete(&a).Error)
	largest := int16(32767)
	c := stand.Made(t, db, javaRow{Version: &largest})
	if err := db.Model(&c).Update("name", "x").Error; err == nil || !strings.Contains(err.Error(), "32767 is the largest") {
		t.Error("H16", err)
	}

	at := stand.Made(t, db, javaTime{})
	for range 3 {
		stand.Must(t, db.Model(&at).Update("name", "x").Error)
		stand.Equal(t, "H15", stand.Row[javaTime](t, db, at.ID).Version.Equal(at.Version), true)
	}
	old := at
	stand.Must(t, db.Save(&at).Error)
	stand.MustStale(t, db.Save(&old).Error)
	stand.Must(t, db.Model(&javaTime{}).Where("id = ?", at.ID).Update("name", "bulk").Error)
	stand.MustStale(t, db.Delete(&at).Error)

}

// H15: a column that keeps less than PostgreSQL can.
func TestH15_Milliseconds(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&javaMillis{}})
	ms := []javaMillis{{}, {}}
	stand.Must(t, db.Create(&ms).Error)
	stand.Must(t, db.Model(&ms[0]).Update("name", "x").Error)
	stand.Must(t, db.Model(&ms[0]).Update("name", "x").Error)
	stand.Must(t, db.Model(&ms).Update("name", "y").Error)
	for _, m := range ms {
		stand.Equal(t, "H15", stand.Row[javaMillis](t, db, m.ID).Version.Equal(*m.Version), true)
	}
	stand.Must(t, db.Save(&ms).Error)
	for i := range ms {
		stand.Must(t, db.Save(&ms[i]).Error)
	}
}

type javaTime struct {
	ID      int64
	Name    string
	Version time.Time `gormlock:"version,hibernate"`
}

type javaMillis struct {
	ID      int64
	Name    string
	Version *time.Time `gorm:"type:timestamp(3)" gormlock:"version"`
}

// V15, P22: the system column as a version.
func TestV15_Xmin(t *testing.T) {
	t.Parallel()
	db, a := stand.Stored(t, stand.XminTask{State: "a"})
	if a.Version == 0 {
		t.Error("created", a)
	}
	var b stand.XminTask
	stand.Must(t, db.First(&b, a.ID).Error)
	stand.Equal(t, "read", b, a)
	stand.Must(t, db.Model(&a).Update("state", "b").Error)
	stand.Equal(t, "updated", a, stand.Row[stand.XminTask](t, db, a.ID))
	e := stand.MustBeStale(t, db.Model(&b).Update("state", "c").Error)
	stand.Equal[any](t, "expected", e.Expected, b.Version)
	stand.Equal[any](t, "actual", e.Actual, a.Version)
	stand.MustStale(t, db.Delete(&b).Error)
	a.State = "save"
	stand.Must(t, db.Save(&a).Error)
	stand.Equal(t, "saved", a, stand.Row[stand.XminTask](t, db, a.ID))
	if err := db.Model(&stand.XminTask{ID: a.ID}).Update("state", "x").Error; !errors.Is(err, gormlock.ErrVersionMissing) {
		t.Error(err)
	}
	many := []stand.XminTask{{}, {}, {}, {}, {}, {}}
	stand.Must(t, db.Create(&many).Error)
	stand.Must(t, db.Model(&many[1]).Update("state", "x").Error)
	stand.Must(t, db.Model(&many[2]).Update("state", "x").Error)
	stand.Must(t, db.Model(&many).Update("state", "y").Error)
	for _, m := range many {
		stand.Equal(t, "batch", m, stand.Row[stand.XminTask](t, db, m.ID))
	}
	stand.Must(t, db.Delete(&many).Error)
	var all []stand.XminTask
	stand.Must(t, db.Find(&all).Error)
	stand.Equal(t, "found", all[0], a)
	var n int64
	stand.Must(t, db.Model(&stand.XminTask{}).Count(&n).Error)
	stand.Equal(t, "count", n, 1)
}

type twoVersions struct {
	ID   int64
	A, B int64 `gormlock:"version"`
}
type textVersion struct {
	ID      int64
	Version string `gormlock:"version"`
}
type bigXmin struct {
	ID   int64
	Xmin int64 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
}
type bareXmin struct {
	ID      int64
	Version uint32 `gormlock:"version,xmin"`
}
type initialXmin struct {
	ID   int64
	Xmin uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin,initial=3"`
}
type twoModes struct {
	ID      int64
	Version int64 `gormlock:"version,rails,hibernate"`
}
type unknownMode struct {
	ID      int64
	Version int64 `gormlock:"version,django"`
}
type numberOfTime struct {
	ID        int64
	UpdatedAt int64 `gormlock:"version"`
}
type taggedNumberOfTime struct {
	ID  int64
	Rev uint32 `gorm:"autoUpdateTime:milli" gormlock:"version"`
}
type negativeInitial struct {
	ID      int64
	Version int64 `gormlock:"version,initial=-1"`
}
type keyVersion struct {
	ID int64 `gormlock:"version"`
}
type unversionedOnly struct {
	ID   int64
	Note string `gormlock:"unversioned"`
}
type wrongWord struct {
	ID      int64
	Version int64 `gormlock:"edition"`
}
type wrongDefault struct {
	ID          int64
	LockVersion int64 `gorm:"default:1" gormlock:"version,rails"`
}
type columnless struct {
	ID      int64
	Version int64 `gorm:"-" gormlock:"version"`
}

type hiddenVersion struct {
	HidingBase
	Version int64
}
type HidingBase struct {
	ID      int64
	Version int64 `gormlock:"version"`
}

func TestWrongTags(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, nil)
	for want, model := range map[string]any{
		"twoVersions.B: a second version field":            &twoVersions{},
		"textVersion.Version: a version field must be an":  &textVersion{},
		"bigXmin.Xmin: the tag `version,xmin` needs":       &bigXmin{},
		"bareXmin.Version: tag the system column":          &bareXmin{},
		"initialXmin.Xmin: initial=3: the server":          &initialXmin{},
		"twoModes.Version: \"hibernate\" after rails":      &twoModes{},
		"unknownMode.Version: unknown mode \"django\"":     &unknownMode{},
		"numberOfTime.UpdatedAt: a version that is a num":  &numberOfTime{},
		"taggedNumberOfTime.Rev: a version that is a num":  &taggedNumberOfTime{},
		"negativeInitial.Version: initial=-1":              &negativeInitial{},
		"keyVersion.ID: a version field cannot be":         &keyVersion{},
		"unversionedOnly has unversioned fields and no":    &unversionedOnly{},
		"wrongWord.Version: unknown word \"edition\"":      &wrongWord{},
		"wrongDefault.LockVersion: default:1 disagrees":    &wrongDefault{},
		"columnless.Version: a version field must be a c":  &columnless{},
		"hiddenVersion.Version: another field of the same": &hiddenVersion{},
	} {
		for use, err := range map[string]error{
			"create": db.Create(model).Error,
			"read":   db.Find(model).Error,
			"update": db.Model(model).Where("1=1").Update("id", 1).Error,
			"delete": db.Where("1=1").Delete(model).Error,
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %T: %v, want %s", use, model, err, want)
			}
		}
	}
}

type base struct {
	Version sql.Null[int64] `gormlock:"version,initial=100"`
}
type Mixin struct {
	Rev uint8 `gormlock:"version"`
}
type byPointer struct {
	Part, Line int `gorm:"primaryKey;autoIncrement:false"`
	*Mixin
	Name string
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&embeddedOne{}, &byPointer{}}, embedded)
}

func embedded(t *testing.T, db *gorm.DB) {
	e := stand.Made(t, db, embeddedOne{})
	stand.Equal(t, "initial", e.Base.Version.V, 100)
	old := e
	stand.Must(t, db.Model(&e).Update("name", "x").Error)
	stand.Equal(t, "row", stand.Row[embeddedOne](t, db, e.ID), e)
	stand.Equal(t, "row", e.Base.Version.V, 101)
	stand.MustStale(t, db.Save(&old).Error)

	p := stand.Made(t, db, byPointer{Part: 1, Line: 0, Mixin: &Mixin{}})
	stand.Must(t, db.Create(&byPointer{Part: 1, Line: 1, Mixin: &Mixin{}}).Error)
	stand.Equal(t, "created", p.Rev, 1)
	// A zero part of the key is a part of the key.
	stand.Must(t, db.Model(&p).Update("name", "x").Error)
	var others int64
	stand.Must(t, db.Model(&byPointer{}).Where("name = 'x'").Count(&others).Error)
	stand.Equal(t, "one row", others, 1)
	stand.Equal(t, "bumped", p.Rev, 2)
	q := byPointer{Part: 1, Line: 0, Mixin: &Mixin{Rev: 1}}
	stale := stand.MustBeStale(t, db.Model(&q).Update("name", "y").Error)
	stand.Equal(t, "message", stale.Error(), "gormlock: by_pointers part=1 line=0: version 1 is stale, the row is at 2")
	stand.Equal(t, "through the pointer", q.Rev, 1)
	both := []byPointer{p, {Part: 1, Line: 1, Mixin: &Mixin{Rev: 1}}}
	stand.Must(t, db.Model(&both).Update("name", "z").Error)
	stand.Equal(t, "both", both[0].Rev+both[1].Rev, 5)
}

type embeddedOne struct {
	ID   int64
	Base base `gorm:"embedded;embeddedPrefix:base_"`
	Name string
}

type partitioned struct {
	ID   int64 `gorm:"primaryKey"`
	Name string
	Xmin uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
}

// P22: what xmin cannot do, as the tour of it says.
func TestP22_XminLimits(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.XminTask{}})
	// A second write in one transaction keeps the xmin: another struct of the same transaction is not seen.
	a := stand.Made(t, db, stand.XminTask{State: "a"})
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		stand.Must(t, tx.Model(&a).Update("state", "b").Error)
		b := a
		stand.Must(t, tx.Model(&a).Update("state", "c").Error)
		stand.Equal(t, "xmin", a.Version, b.Version)
		return tx.Model(&b).Update("state", "unseen").Error
	}))
	// An upsert of loaded rows cannot compare it, and says so; one that does not compare works.
	if err := db.Save(&[]stand.XminTask{a}).Error; err == nil || errors.Is(err, gormlock.ErrStale) {
		t.Error(err)
	}
	stand.Must(t, db.Clauses(gormlock.IgnoreVersion()).Save(&[]stand.XminTask{a}).Error)
	if err := gormlock.Touch(db, &a); err == nil {
		t.Error("xmin cannot be touched alone")
	}
	// An INSERT into a partitioned table cannot return it.
	stand.Must(t, db.Exec(`CREATE TABLE partitioneds (id bigint, name text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
		CREATE TABLE partitioneds_1 PARTITION OF partitioneds DEFAULT`).Error)
	p := partitioned{ID: 1}
	if err := db.Create(&p).Error; err == nil {
		t.Error("the server takes it by now: say so in the guide")
	}
	stand.Must(t, db.Clauses(gormlock.IgnoreVersion()).Create(&p).Error)
	stand.Equal(t, "not loaded", p.Xmin, 0)
	stand.Must(t, db.First(&p, 1).Error)
	old := p
	stand.Must(t, db.Model(&p).Update("name", "x").Error)
	stand.MustStale(t, db.Model(&old).Update("name", "y").Error)
}

type detached struct {
	ID      int64
	Balance int64
	Version int32 `gormlock:"version,hibernate"`
}

type detachedRails struct {
	ID          int64
	Balance     int64
	LockVersion int32 `gormlock:"version,rails"`
}

// writtenSince creates a row and writes it again, and is the row as it was before.
func writtenSince[T any](t *testing.T, db *gorm.DB, row *T) T {
	t.Helper()
	stand.MustDo(t, db.Create(row))
	was := *row
	stand.MustDo(t, db.Model(row).Update("balance", 10))
	return was
}

// A struct of the model with its key is a row that was read, at version 0 too where that is the first one.
func TestUpdatesWithADetachedRow_atItsFirstVersion(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&detached{}, &detachedRails{}})
	for name, write := range map[string]func() error{
		"hibernate": func() error {
			first := detached{Balance: 100}
			late := writtenSince(t, db, &first)
			late.Balance = 95
			return db.Model(&detached{ID: first.ID, Version: first.Version}).Updates(late).Error
		},
		"rails, all columns": func() error {
			first := detachedRails{Balance: 100}
			late := writtenSince(t, db, &first)
			late.Balance = 95
			return db.Model(&detachedRails{ID: first.ID, LockVersion: first.LockVersion}).Select("*").Updates(&late).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := write(); !errors.Is(err, gormlock.ErrStale) {
				t.Errorf("a row that was read before the last write is written over: %v", err)
			}
		})
	}
	fresh := stand.Made(t, db, detached{Balance: 1})
	stand.MustDo(t, db.Model(&fresh).Updates(detached{Balance: 2})) // without its key: values to set
	if stand.MustDo(t, db.Model(&fresh).Updates(fresh)); fresh.Version != 2 {
		t.Errorf("version %d", fresh.Version)
	}
}

// What is expected of a row is compared, or an error says that nothing was sent to compare it.
func TestExpectVersion_whereNothingIsSet(t *testing.T) {
	t.Parallel()
	db, a := stand.Stored(t, stand.Account{Balance: 100})
	for name, err := range map[string]error{
		"ExpectVersion": db.Clauses(gormlock.ExpectVersion(99)).Model(&a).Updates(map[string]any{}).Error,
		"IfUnchanged":   db.Clauses(gormlock.IfUnchanged(&a, "balance")).Model(&a).Updates(map[string]any{}).Error,
	} {
		if err == nil || !strings.Contains(err.Error(), "nothing is set") {
			t.Errorf("%s: %v", name, err)
		}
	}
	stand.MustDo(t, db.Model(&a).Updates(map[string]any{})) // as without the plugin
}

// A struct whose time was never read cannot be written.
func TestTimes_thatWereNotRead(t *testing.T) {
	t.Parallel()
	db, a := stand.Stored(t, stand.TimedTask{State: "a"})
	stand.MustBeUnread(t, db.Model(&stand.TimedTask{ID: a.ID}).Update("state", "x").Error)
	stand.MustBeUnread(t, db.Delete(&stand.TimedTask{ID: a.ID}).Error)
	stand.Equal(t, "state", stand.Row[stand.TimedTask](t, db, a.ID).State, "a")
}
