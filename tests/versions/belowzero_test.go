package versions_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	belowShort struct {
		ID, A   int64
		Version int16 `gormlock:"version,hibernate"`
	}
	belowInt struct {
		ID, A   int64
		Version *int32 `gormlock:"version,hibernate"`
	}
	belowMaybe struct {
		ID, A   int64
		Version sql.NullInt64 `gormlock:"version,hibernate"`
	}
	belowWide struct {
		ID, A   int64
		Version int16 `gorm:"type:bigint" gormlock:"version,hibernate"`
	}
	belowHidden struct {
		ID, A     int64
		Version   int64 `gormlock:"version,hibernate"`
		DeletedAt gorm.DeletedAt
	}
	belowCounted struct {
		ID, A   int64
		Version int64 `gormlock:"version"`
	}
	belowRails struct {
		ID, A   int64
		Version int32 `gormlock:"version,rails"`
	}
)

// A version of Java's type short comes to numbers below zero. It does not come to -1 by gormlock, as that stands for a struct that was not read.
func TestVersionBelowZero(t *testing.T) {
	t.Parallel()
	belowZero[belowShort](t, true)
	belowZero[belowInt](t, true)
	belowZero[belowMaybe](t, true)
	belowZero[belowWide](t, true)
	belowZero[belowHidden](t, true)
	belowZero[belowCounted](t, false)
	belowZero[belowRails](t, false)
}

// belowWrites move the version of the row with key 1, which row was read from. In a blind one no version is known.
var belowWrites = map[string]struct {
	do    func(db *gorm.DB, row any) error
	blind bool
}{
	"Update": {do: func(db *gorm.DB, row any) error { return db.Model(row).Update("a", 1).Error }},
	"by value": {do: func(db *gorm.DB, row any) error {
		return db.Model(reflect.ValueOf(row).Elem().Interface()).Update("a", 1).Error
	}},
	"Save":       {do: func(db *gorm.DB, row any) error { return db.Save(row).Error }},
	"of a slice": {do: func(db *gorm.DB, row any) error { return db.Model(listOf(row)).Update("a", 1).Error }},
	"of two":     {do: func(db *gorm.DB, row any) error { return db.Model(bothOf(db, row)).Update("a", 1).Error }},
	"Touch":      {do: gormlockTouch},
	"ExpectVersion": {do: func(db *gorm.DB, row any) error {
		return db.Clauses(gormlock.ExpectVersion(-2)).Model(row).Update("a", 1).Error
	}},
	"ExpectVersion, bulk": {do: func(db *gorm.DB, row any) error {
		return db.Clauses(gormlock.ExpectVersion(-2)).Model(emptyOf(row)).Where("id = 1").Update("a", 1).Error
	}},
	"a map": {do: func(db *gorm.DB, row any) error {
		return db.Model(row).Updates(map[string]any{"a": 1, "version": -2}).Error
	}},
	"If-Match": {do: func(db *gorm.DB, row any) error {
		return db.Clauses(stand.IfMatch(`"-2"`)).Model(row).Update("a", 1).Error
	}},

	"Save of a slice": {blind: true, do: func(db *gorm.DB, row any) error { return db.Save(listOf(row)).Error }},
	"upsert":          {blind: true, do: func(db *gorm.DB, row any) error { return db.Clauses(stand.UpdateAll).Create(row).Error }},
	"one of two tags": {blind: true, do: func(db *gorm.DB, row any) error {
		return db.Clauses(stand.IfMatch(`"-2"`, `"7"`)).Model(row).Update("a", 1).Error
	}},
	"any tag": {blind: true, do: func(db *gorm.DB, row any) error {
		return db.Clauses(stand.IfMatch(`*`)).Model(row).Update("a", 1).Error
	}},
	"bulk": {blind: true, do: func(db *gorm.DB, row any) error { return db.Model(emptyOf(row)).Where("id = 1").Update("a", 1).Error }},
	"IgnoreVersion": {blind: true, do: func(db *gorm.DB, row any) error {
		return db.Clauses(gormlock.IgnoreVersion()).Model(row).Update("a", 1).Error
	}},
	"IgnoreVersion, Save": {blind: true, do: func(db *gorm.DB, row any) error {
		return db.Clauses(gormlock.IgnoreVersion()).Save(row).Error
	}},
	"IgnoreVersion, Touch": {blind: true, do: func(db *gorm.DB, row any) error {
		return gormlock.Touch(db.Clauses(gormlock.IgnoreVersion()), row)
	}},
	"IgnoreVersion, upsert": {blind: true, do: func(db *gorm.DB, row any) error {
		return db.Clauses(gormlock.IgnoreVersion(), stand.UpdateAll).Create(row).Error
	}},
}

// bothOf is a slice of the struct and of that of row 2.
func bothOf(db *gorm.DB, row any) any {
	other := emptyOf(row)
	db.Take(other, 2)
	list := reflect.ValueOf(listOf(row)).Elem()
	list = reflect.Append(list, reflect.ValueOf(other))
	return list.Interface()
}

func belowZero[T any](t *testing.T, blind bool) {
	t.Helper()
	t.Run(reflect.TypeFor[T]().Name(), func(t *testing.T) {
		t.Parallel()
		stand.OnEachAndMySQL(t, []any{new(T)}, func(t *testing.T, db *gorm.DB) {
			for how, write := range belowWrites {
				if blind || !write.blind {
					below(t, db, how, func(row *T) error { return write.do(db, row) })
				}
			}
			below(t, db, "the generics API", func(row *T) error {
				return stand.ErrorOf(gorm.G[T](db, gormlock.ExpectVersion(-2)).Where("id = 1").Update(context.Background(), "a", 1))
			})
			if reflect.TypeFor[T]() == reflect.TypeFor[belowHidden]() {
				below(t, db, "a soft delete", func(row *T) error { return db.Delete(row).Error })
			}
			if db.Name() == "postgres" && blind {
				below(t, db, "a claim", func(row *T) error {
					rows, err := gormlock.Claim[T](db, 1, map[string]any{"a": 1}, func(db *gorm.DB) *gorm.DB { return db.Where("id = 1") })
					*row = rows[0]
					return err
				})
			}
		})
	})
}

func below[T any](t *testing.T, db *gorm.DB, how string, write func(row *T) error) {
	t.Helper()
	table := stand.TableOf(db, new(T))
	stand.MustDo(t, db.Exec("DELETE FROM "+table))
	stand.MustDo(t, db.Exec("INSERT INTO "+table+" (id, a, version) VALUES (1, 0, -2), (2, 0, 5)"))
	row := stand.Row[T](t, db, 1)
	if err := write(&row); err != nil {
		t.Errorf("%s: %v", how, err)
	}
	now := stand.Row[T](t, db, 1)
	if at := versionText(&now); at != "0" && at != "1" && at != "{0 true}" && at != "{1 true}" {
		t.Errorf("%s: the row is at %s", how, at)
	}
	if held := versionText(&row); held != versionText(&now) && !strings.Contains(held, "-") {
		t.Errorf("%s: the struct is at %s, the row at %s", how, held, versionText(&now))
	}
	stand.MustDo(t, db.Unscoped().Model(&now).Update("a", 3))
}

// A row that another program has brought to -1, as Java counts, is written with IgnoreVersion. The error says so.
func TestVersionMinusOne_hasACure(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&belowShort{}, &belowInt{}, &belowMaybe{}, &belowCounted{}, &belowRails{}}, func(t *testing.T, db *gorm.DB) {
		minusOne[belowShort](t, db)
		minusOne[belowInt](t, db)
		minusOne[belowMaybe](t, db)
		minusOne[belowCounted](t, db)
		minusOne[belowRails](t, db)
	})
}

func minusOne[T any](t *testing.T, db *gorm.DB) {
	t.Helper()
	table := stand.TableOf(db, new(T))
	for how, ignoring := range map[string]func(db *gorm.DB, row *T) error{
		"Update": func(db *gorm.DB, row *T) error { return db.Model(row).Update("a", 1).Error },
		"Save":   func(db *gorm.DB, row *T) error { return db.Save(row).Error },
		"Touch":  func(db *gorm.DB, row *T) error { return gormlock.Touch(db, row) },
		"slice":  func(db *gorm.DB, row *T) error { return db.Save(&[]*T{row}).Error },
		"upsert": func(db *gorm.DB, row *T) error { return db.Clauses(stand.UpdateAll).Create(row).Error },
	} {
		stand.MustDo(t, db.Exec("DELETE FROM "+table))
		stand.MustDo(t, db.Exec("INSERT INTO "+table+" (id, a, version) VALUES (1, 0, -1)"))
		row := stand.Row[T](t, db, 1)
		err := db.Model(&row).Update("a", 1).Error
		if want := "the row is at -1, which stands for a struct that was not read: move it on with IgnoreVersion, then read it"; !errors.Is(err, gormlock.ErrVersionMissing) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", table, err)
		}
		if err := ignoring(db.Clauses(gormlock.IgnoreVersion()), &row); err != nil {
			t.Errorf("%s, %s: %v", table, how, err)
		}
		row = stand.Row[T](t, db, 1)
		if at := versionText(&row); strings.Contains(at, "-") {
			t.Errorf("%s, %s: the row is at %s", table, how, at)
		}
		stand.MustDo(t, db.Model(&row).Update("a", 4))
		stand.MustDo(t, db.Exec("UPDATE "+table+" SET version = -1"))
		stand.MustDo(t, db.Clauses(gormlock.IgnoreVersion()).Delete(&row))
	}
}

// An unsigned field is not moved past its largest number by IgnoreVersion: the error names another cure.
func TestVersionMinusOne_ofAnUnsignedField(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&unreadByte{}})
	stand.MustDo(t, db.Exec("INSERT INTO unread_bytes (id, title, seen, version) VALUES (1, '', 0, 255)"))
	row := stand.Row[unreadByte](t, db, 1)
	err := db.Model(&row).Update("title", "x").Error
	if want := "the row is at 255, which stands for a struct that was not read: give it another version with SQL, then read it"; !errors.Is(err, gormlock.ErrVersionMissing) || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}

// Nor is a row that has a time of the first year lost.
func TestVersionMinusOne_ofATime(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.TimedTask{}})
	stand.MustDo(t, db.Exec("INSERT INTO timed_tasks (id, version) VALUES (1, '0001-03-04 05:06:07Z')"))
	row := stand.Row[stand.TimedTask](t, db, 1)
	err := db.Model(&row).Update("state", "x").Error
	if want := "which stands for a struct that was not read: move it on with IgnoreVersion"; !errors.Is(err, gormlock.ErrVersionMissing) || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	stand.MustDo(t, db.Clauses(gormlock.IgnoreVersion()).Model(&row).Update("state", "x"))
	row = stand.Row[stand.TimedTask](t, db, 1)
	stand.MustDo(t, db.Model(&row).Update("state", "y"))
}

// The trigger does not move a version to -1 either.
func TestVersionTrigger_belowZero(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&belowShort{}})
	stand.MustDo(t, db.Exec(gormlock.VersionTrigger("below_shorts", "version")))
	stand.MustDo(t, db.Exec("INSERT INTO below_shorts (id, a, version) VALUES (1, 0, -4)"))
	for _, want := range []string{"-3", "-2", "0", "1"} {
		stand.MustDo(t, db.Exec("UPDATE below_shorts SET a = a + 1"))
		stand.Equal(t, "the version", fmt.Sprint(stand.Row[belowShort](t, db, 1).Version), want)
	}
}
