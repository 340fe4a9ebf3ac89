package versions_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	emptySet struct {
		ID        int64
		Code      string `gorm:"unique;size:20"`
		A         int64
		CreatedAt time.Time
		Version   int64 `gormlock:"version"`
	}
	emptyJava struct {
		ID        int64
		Code      string `gorm:"unique;size:20"`
		A         int64
		CreatedAt time.Time
		Version   int64 `gormlock:"version,hibernate"`
	}
	emptyTime struct {
		ID        int64
		Code      string `gorm:"unique;size:20"`
		A         int64
		CreatedAt time.Time
		Version   time.Time `gormlock:"version"`
	}
)

// GORM makes DO NOTHING of an upsert of all columns if Select leaves none that can be updated. The error says that it is Select.
func TestUpsert_ofWhichNothingIsLeft(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&emptySet{}, &emptyJava{}, &emptyTime{}}, func(t *testing.T, db *gorm.DB) {
		nothingToUpdate[emptySet](t, db)
		nothingToUpdate[emptyJava](t, db)
		nothingToUpdate[emptyTime](t, db)
	})
}

func nothingToUpdate[T comparable](t *testing.T, db *gorm.DB) {
	t.Helper()
	byCode := clause.OnConflict{Columns: []clause.Column{{Name: "code"}}, UpdateAll: true}
	byKey := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, UpdateAll: true}
	for how, upsert := range map[string]func(row *T) *gorm.DB{
		"by another column": func(row *T) *gorm.DB { return db.Clauses(byCode).Select("id").Create(row) },
		"by the key":        func(row *T) *gorm.DB { return db.Clauses(byKey).Select("id").Create(row) },
		"the time":          func(row *T) *gorm.DB { return db.Clauses(byKey).Select("id", "created_at").Create(row) },
		"Omit":              func(row *T) *gorm.DB { return db.Clauses(byKey).Omit("code", "a", "created_at", "version").Create(row) },
		"a slice":           func(row *T) *gorm.DB { return db.Clauses(byKey).Select("id").Create([]*T{row}) },
		"Save of a slice":   func(row *T) *gorm.DB { return db.Select("id").Save([]*T{row}) },
		"IgnoreVersion":     func(row *T) *gorm.DB { return db.Clauses(byKey, gormlock.IgnoreVersion()).Select("id").Create(row) },
		"a map": func(row *T) *gorm.DB {
			return db.Model(row).Clauses(byKey).Select("id").Create(map[string]any{"id": 1, "code": "a"})
		},
	} {
		for _, kind := range []string{"read", "new", "of no row"} {
			stand.MustDo(t, db.Where("1 = 1").Delete(new(T)))
			made := keyed[T]()
			stand.MustDo(t, db.Create(made))
			row := stand.Row[T](t, db, 1)
			was, fresh := row, &row
			switch kind {
			case "new":
				fresh = keyed[T]()
			case "of no row":
				fresh = keyed[T]()
				stand.MustDo(t, db.Where("1 = 1").Delete(new(T)))
			}
			if _, isNew := any(was).(emptyJava); how == "the time" && (isNew || kind == "read") {
				continue // a struct that was read keeps its time, and a new one may be such at 0
			}
			if err := upsert(fresh).Error; err == nil || !strings.Contains(err.Error(), "Select and Omit leave nothing to update") {
				t.Errorf("%T, %s, %s: %v", was, how, kind, err)
			}
			var rows []T
			stand.MustDo(t, db.Find(&rows))
			if kind == "of no row" && len(rows) > 0 || kind != "of no row" && (len(rows) != 1 || fmt.Sprint(rows[0]) != fmt.Sprint(was)) {
				t.Errorf("%T, %s, %s: the rows are %v", was, how, kind, rows)
			}
		}
	}
}

// keyed is a new struct with the key 1.
func keyed[T any]() *T {
	row := new(T)
	place := reflect.ValueOf(row).Elem()
	place.FieldByName("ID").SetInt(1)
	place.FieldByName("Code").SetString("a")
	return row
}

// xmin is in no SET: rows that are not there are stored.
func TestUpsert_ofWhichNothingIsLeftButXmin(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.XminTask{}})
	upsert := func(state string) error {
		return db.Clauses(stand.UpdateAll).Select("id").Create(&stand.XminTask{ID: 1, State: state}).Error
	}
	stand.Must(t, upsert("a"))
	if err := upsert("b"); err == nil || !strings.Contains(err.Error(), "Select and Omit leave nothing to update") {
		t.Error(err)
	}
}
