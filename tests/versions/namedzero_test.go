package versions_test

import (
	"errors"
	"reflect"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	zeroRails struct {
		ID        int64
		Title     string
		Body      *string
		Version   int32 `gormlock:"version,rails"`
		DeletedAt gorm.DeletedAt
	}
	zeroJava struct {
		ID        int64
		Title     string
		Body      *string
		Version   *int64 `gormlock:"version,hibernate"`
		DeletedAt gorm.DeletedAt
	}
	zeroFirst struct {
		ID        int64
		Title     string
		Body      *string
		Version   int64 `gormlock:"version,initial=0"`
		DeletedAt gorm.DeletedAt
	}
	zeroLegacy struct {
		ID        int64
		Title     string
		Body      *string
		Version   int64 `gormlock:"version"`
		DeletedAt gorm.DeletedAt
	}
	zeroForm struct {
		Title   string
		Version int64
	}
)

// Who names version 0 beside a struct does not say that the struct was read. It becomes its row, or counts as not read.
func TestNamedZero(t *testing.T) {
	t.Parallel()
	models := []any{&zeroRails{}, &zeroJava{}, &zeroFirst{}, &zeroLegacy{}}
	test := func(t *testing.T, db *gorm.DB) {
		for _, db := range []*gorm.DB{db, db.Session(&gorm.Session{SkipDefaultTransaction: true})} {
			namedZero[zeroRails](t, db, 0)
			namedZero[zeroJava](t, db, 0)
			namedZero[zeroJava](t, db, nil)
			namedZero[zeroFirst](t, db, 0)
			namedZero[zeroLegacy](t, db, 0)
		}
	}
	stand.OnEachAndMySQL(t, models, test)
}

func namedZero[T any](t *testing.T, db *gorm.DB, at any) {
	t.Helper()
	expected, tag := gormlock.ExpectVersion(0), stand.IfMatch(`"0"`)
	if at == nil {
		tag = stand.IfMatch(`"null"`)
	}
	for how, write := range map[string]func(x *T) error{
		"ExpectVersion": func(x *T) error { return db.Clauses(expected).Model(x).Updates(map[string]any{"title": "new"}).Error },
		"If-Match":      func(x *T) error { return db.Clauses(tag).Model(x).Update("title", "new").Error },
		"of itself": func(x *T) error {
			reflect.ValueOf(x).Elem().FieldByName("Title").SetString("new")
			return db.Clauses(tag).Updates(x).Error
		},
		"a slice":     func(x *T) error { return db.Clauses(tag).Model([]*T{x}).Update("title", "new").Error },
		"a map":       func(x *T) error { return db.Model(x).Updates(map[string]any{"title": "new", "version": 0}).Error },
		"a form":      func(x *T) error { return db.Model(x).Updates(zeroForm{Title: "new"}).Error },
		"Touch":       func(x *T) error { return gormlock.Touch(db.Clauses(expected), x) },
		"soft delete": func(x *T) error { return db.Clauses(expected).Delete(x).Error },
		"slice, soft": func(x *T) error { return db.Clauses(expected).Delete([]*T{x}).Error },
		"preserved": func(x *T) error {
			return db.Clauses(expected, gormlock.PreserveVersion()).Model(x).Update("title", "new").Error
		},
	} {
		tagged := how == "If-Match" || how == "of itself" || how == "a slice"
		if _, legacy := any(*new(T)).(zeroLegacy); at == nil && !tagged || legacy && (tagged || how == "a form" || how == "preserved") {
			continue // the others name 0, which has no tag where versions start at 1, and is the version of a struct that was not read
		}
		for _, read := range []bool{false, true} {
			table := stand.TableOf(db, new(T))
			stand.MustDo(t, db.Exec("DELETE FROM "+table))
			stand.MustDo(t, db.Exec("INSERT INTO "+table+" (id, title, body, version) VALUES (1, 'a', 'body', ?)", at))
			x := new(T)
			if reflect.ValueOf(x).Elem().FieldByName("ID").SetInt(1); read {
				*x = stand.Row[T](t, db, 1)
			}
			err := write(x)
			if err != nil {
				t.Errorf("%T, %s: %v", *x, how, err)
			}
			reflect.ValueOf(x).Elem().FieldByName("Title").SetString("again")
			saved := db.Unscoped().Save(x).Error
			if saved != nil && !errors.Is(saved, gormlock.ErrVersionMissing) {
				t.Errorf("%T, %s, then Save: %v", *x, how, saved)
			}
			now := stand.Row[T](t, db, 1)
			if reflect.ValueOf(now).FieldByName("Body").IsNil() {
				t.Errorf("%T, %s, read %v: the body is gone", *x, how, read)
			}
			if read && saved != nil && db.Name() == "postgres" {
				t.Errorf("%T, %s: the struct that was read can be written no more: %v", *x, how, saved)
			}
		}
	}
}
