package versions_test

import (
	"database/sql"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/etag"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	// fullRow has a version of some type.
	fullRow[V any] struct {
		ID, OtherID int64
		A           int64
		Note        string `gormlock:"unversioned"`
		Version     V      `gormlock:"version"`
	}
	fullByte   fullRow[uint8]
	fullUshort fullRow[uint16]
	fullInt    fullRow[int32]
	fullLong   fullRow[int64]
	fullUlong  fullRow[uint64]
	fullPlace  fullRow[*int16]
	fullJava   struct {
		ID, OtherID int64
		A           int64
		Note        string `gormlock:"unversioned"`
		Version     int16  `gormlock:"version,hibernate"`
	}
	fullRails struct {
		ID, OtherID int64
		A           int64
		Note        string `gormlock:"unversioned"`
		Version     *int64 `gorm:"type:integer" gormlock:"version,rails"`
	}
	fullHidden struct {
		ID, OtherID int64
		A           int64
		Note        string `gormlock:"unversioned"`
		Version     uint8  `gormlock:"version"`
		DeletedAt   gorm.DeletedAt
	}
)

// A row at the largest version is written and deleted as any other. Only a write that would move its version further is refused.
func TestLargestVersion(t *testing.T) {
	t.Parallel()
	atLargest[fullByte](t, 254)
	atLargest[fullUshort](t, 65534)
	atLargest[fullInt](t, 2147483647)
	atLargest[fullLong](t, 9223372036854775807)
	atLargest[fullUlong](t, 9223372036854775806)
	atLargest[fullPlace](t, 32767)
	atLargest[fullJava](t, 32767)
	atLargest[fullRails](t, 2147483647)
	atLargest[fullHidden](t, 254)
}

// fullWrite is a write of the row of a struct that was read.
type fullWrite struct {
	do    func(db *gorm.DB, row any) error
	moves bool // it would move the version
	blind bool // gormlock does not know that: the server refuses it
	gone  bool // the row is then deleted, softly where the model is, which moves the version
}

var preserving = gormlock.PreserveVersion()

var fullWrites = map[string]fullWrite{
	"Update":          {moves: true, do: func(db *gorm.DB, row any) error { return db.Model(row).Update("a", 1).Error }},
	"Save":            {moves: true, do: func(db *gorm.DB, row any) error { return db.Save(row).Error }},
	"Save of a slice": {moves: true, do: func(db *gorm.DB, row any) error { return db.Save(listOf(row)).Error }},
	"of a slice":      {moves: true, do: func(db *gorm.DB, row any) error { return db.Model(listOf(row)).Update("a", 1).Error }},
	"upsert":          {moves: true, do: func(db *gorm.DB, row any) error { return db.Clauses(stand.UpdateAll).Create(row).Error }},
	"Touch":           {moves: true, do: gormlockTouch},
	"ExpectVersion":   {moves: true, do: func(db *gorm.DB, row any) error { return db.Clauses(expecting(row)).Model(row).Update("a", 1).Error }},
	"ExpectVersion, bulk": {moves: true, do: func(db *gorm.DB, row any) error {
		return db.Clauses(expecting(row)).Model(emptyOf(row)).Where("id = 1").Update("a", 1).Error
	}},
	"bulk":          {moves: true, blind: true, do: func(db *gorm.DB, row any) error { return db.Model(emptyOf(row)).Where("id = 1").Update("a", 1).Error }},
	"IgnoreVersion": {moves: true, blind: true, do: func(db *gorm.DB, row any) error { return db.Clauses(gormlock.IgnoreVersion()).Save(row).Error }},

	"unversioned": {do: func(db *gorm.DB, row any) error { return db.Model(row).Update("note", "n").Error }},
	"unversioned, Select": {do: func(db *gorm.DB, row any) error {
		return db.Select("note").Save(row).Error
	}},
	"unversioned, a slice": {do: func(db *gorm.DB, row any) error { return db.Model(listOf(row)).Update("note", "n").Error }},
	"unversioned, bulk": {do: func(db *gorm.DB, row any) error {
		return db.Model(emptyOf(row)).Where("id = 1").Update("note", "n").Error
	}},
	"unversioned, ExpectVersion": {do: func(db *gorm.DB, row any) error {
		return db.Clauses(expecting(row)).Model(emptyOf(row)).Where("id = 1").Update("note", "n").Error
	}},
	"unversioned, If-Match": {do: func(db *gorm.DB, row any) error {
		return db.Clauses(matching(row)).Model(row).Update("note", "n").Error
	}},
	"unversioned, one of two tags": {do: func(db *gorm.DB, row any) error {
		return db.Clauses(matching(row, `"7"`)).Model(row).Update("note", "n").Error
	}},
	"PreserveVersion": {do: func(db *gorm.DB, row any) error { return db.Clauses(preserving).Model(row).Update("a", 1).Error }},
	"PreserveVersion, Save": {do: func(db *gorm.DB, row any) error {
		return db.Clauses(preserving).Save(row).Error
	}},
	"PreserveVersion, a slice": {do: func(db *gorm.DB, row any) error {
		return db.Clauses(preserving).Model(listOf(row)).Update("a", 1).Error
	}},
	"PreserveVersion, Touch": {do: func(db *gorm.DB, row any) error { return gormlock.Touch(db.Clauses(preserving), row) }},
	"PreserveVersion, an upsert of a new struct": {do: func(db *gorm.DB, row any) error {
		fresh := emptyOf(row)
		reflect.ValueOf(fresh).Elem().FieldByName("ID").SetInt(1)
		return db.Clauses(preserving, gormlock.IgnoreVersion(), stand.UpdateAll).Create(fresh).Error
	}},
	"VerifyVersion": {do: func(db *gorm.DB, row any) error {
		return db.Transaction(func(tx *gorm.DB) error { return gormlock.VerifyVersion(tx, row) })
	}},
	"DoNothing": {do: func(db *gorm.DB, row any) error {
		return db.Clauses(clause.OnConflict{DoNothing: true}).Create(row).Error
	}},

	"Delete":            {gone: true, do: func(db *gorm.DB, row any) error { return db.Delete(row).Error }},
	"Delete of a slice": {gone: true, do: func(db *gorm.DB, row any) error { return db.Delete(listOf(row)).Error }},
	"Delete, ExpectVersion": {gone: true, do: func(db *gorm.DB, row any) error {
		return db.Clauses(expecting(row)).Delete(row).Error
	}},
	"Delete, If-Match": {gone: true, do: func(db *gorm.DB, row any) error {
		return db.Clauses(matching(row)).Delete(row).Error
	}},
	"Delete, bulk": {gone: true, do: func(db *gorm.DB, row any) error {
		return db.Clauses(expecting(row)).Where("id = 1").Delete(emptyOf(row)).Error
	}},
	"Delete for good": {gone: true, do: func(db *gorm.DB, row any) error { return db.Unscoped().Delete(row).Error }},
}

func gormlockTouch(db *gorm.DB, row any) error { return gormlock.Touch(db, row) }

// emptyOf points to an empty struct of row's type, and listOf to a slice of row.
func emptyOf(row any) any { return reflect.New(reflect.TypeOf(row).Elem()).Interface() }

func listOf(row any) any {
	list := reflect.New(reflect.SliceOf(reflect.TypeOf(row)))
	list.Elem().Set(reflect.Append(list.Elem(), reflect.ValueOf(row)))
	return list.Interface()
}

func expecting(row any) clause.Expression {
	return gormlock.ExpectVersion(reflect.Indirect(reflect.ValueOf(row).Elem().FieldByName("Version")).Interface())
}

func matching(row any, others ...string) clause.Expression {
	tag := fmt.Sprintf(`"%v"`, reflect.Indirect(reflect.ValueOf(row).Elem().FieldByName("Version")).Interface())
	return stand.IfMatch(append(others, tag)...)
}

func atLargest[T any](t *testing.T, largest uint64) {
	t.Helper()
	t.Run(reflect.TypeFor[T]().Name(), func(t *testing.T) {
		t.Parallel()
		stand.OnEachAndMySQL(t, []any{new(T)}, func(t *testing.T, db *gorm.DB) { fullRows[T](t, db, largest) })
	})
}

func fullRows[T any](t *testing.T, db *gorm.DB, largest uint64) {
	t.Helper()
	table := stand.TableOf(db, new(T))
	soft := reflect.TypeFor[T]() == reflect.TypeFor[fullHidden]()
	for how, write := range fullWrites {
		if write.blind && db.Name() == "sqlite" {
			continue // whose columns hold any number
		}
		stand.MustDo(t, db.Exec("DELETE FROM "+table))
		stand.MustDo(t, db.Exec("INSERT INTO "+table+" (id, other_id, a, note, version) VALUES (1, 0, 0, '', ?)", fmt.Sprint(largest)))
		row := stand.Row[T](t, db, 1)
		if tag, err := etag.Of(&row); err != nil || tag != fmt.Sprintf(`"%d"`, largest) {
			t.Errorf("the tag is %s: %v", tag, err)
		}
		refused := write.moves || write.gone && soft && how != "Delete for good"
		err := write.do(db, &row)
		switch {
		case refused && (err == nil || !write.blind && !strings.Contains(err.Error(), fmt.Sprint(largest)+" is the largest")), !refused && err != nil:
			t.Errorf("%s: %v", how, err)
		}
		var rows []T
		stand.MustDo(t, db.Find(&rows))
		switch gone := write.gone && !refused; {
		case gone && len(rows) > 0 || !gone && len(rows) == 0:
			t.Errorf("%s: there are the rows %+v", how, rows)
		case !gone && !strings.Contains(versionText(&rows[0]), fmt.Sprint(largest)):
			t.Errorf("%s: the version is %s", how, versionText(&rows[0]))
		}
	}
}

func versionText(row any) string {
	return fmt.Sprint(reflect.Indirect(reflect.ValueOf(row).Elem().FieldByName("Version")).Interface())
}

type (
	fullWide struct {
		ID, A   int64
		Version *int16 `gorm:"type:bigint" gormlock:"version,hibernate"`
	}
	fullMaybe struct {
		ID, A   int64
		Version sql.NullInt16 `gorm:"type:integer" gormlock:"version"`
	}
	fullGuide struct {
		ID, A       int64
		LockVersion int64 `gormlock:"version,rails"`
	}
)

// The error says whose largest number it is, that of the field or that of the column.
func TestLargestVersion_whoseItIs(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&fullByte{}, &fullJava{}, &fullWide{}, &fullMaybe{}, &fullGuide{}})
	ofField, ofColumn := "is the largest its field can have", "is the largest its column holds: give the column "
	saysWhose(t, db, &fullByte{ID: 1, Version: 254}, ofField+" (255 stands for a struct that was not read): give the field Version a larger type than uint8")
	most := int16(32767)
	saysWhose(t, db, &fullWide{ID: 1, Version: &most}, ofField+": give the field Version a larger type than *int16")
	saysWhose(t, db, &fullMaybe{ID: 1, Version: sql.NullInt16{Int16: most, Valid: true}}, ofField+": give the field Version a larger type than sql.NullInt16")
	saysWhose(t, db, &fullJava{ID: 1, Version: most}, ofColumn+"version a larger type, in the table and in the model")
	saysWhose(t, db, &fullGuide{ID: 1, LockVersion: 2147483647}, ofColumn+"lock_version a larger type, in the table and in the model")
}

func saysWhose(t *testing.T, db *gorm.DB, row any, want string) {
	t.Helper()
	for how, err := range map[string]error{
		"update": db.Model(row).Update("a", 1).Error, "touch": gormlock.Touch(db, row), "slice": db.Save(listOf(row)).Error,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", how, err)
		}
	}
}

type fullOwned struct {
	ID, FullParentID int64
	A                int64
	Version          uint8 `gormlock:"version"`
}

type fullParent struct {
	ID    int64
	Name  string
	Owned []fullOwned
}

// A child is not moved, nor its version, when its parent is saved. It is if it comes to another one.
func TestLargestVersion_ofAChild(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&fullParent{}, &fullOwned{}}, func(t *testing.T, db *gorm.DB) {
		one := stand.Made(t, db, fullParent{Name: "one", Owned: []fullOwned{{A: 1}}})
		two := stand.Made(t, db, fullParent{Name: "two"})
		stand.MustDo(t, db.Exec("UPDATE full_owneds SET version = 254"))
		stand.MustDo(t, db.Preload("Owned").First(&one))
		stand.MustDo(t, db.Save(&one))
		stand.Must(t, db.Model(&one).Association("Owned").Append(&one.Owned[0]))
		two.Owned = one.Owned
		if err := db.Save(&two).Error; err == nil {
			t.Error("the version of the child moves past the largest")
		}
		stand.Equal(t, "the child", stand.Row[fullOwned](t, db, one.Owned[0].ID), fullOwned{ID: one.Owned[0].ID, FullParentID: one.ID, A: 1, Version: 254})
		if err := db.Session(&gorm.Session{FullSaveAssociations: true}).Save(&one).Error; err == nil || !strings.Contains(err.Error(), "254 is the largest") {
			t.Errorf("saved whole: %v", err)
		}
		stand.Must(t, db.Model(&one).Association("Owned").Unscoped().Clear())
	})
}
