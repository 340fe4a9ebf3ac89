package versions_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// TestTouchOfNoRow: a Touch that moved no version is an error, checked or not, and leaves the struct as it was.
func TestTouchOfNoRow(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&touched{}}, func(t *testing.T, db *gorm.DB) {
		gone := touched{ID: 7}
		unchecked := db.Clauses(gormlock.IgnoreVersion()).Session(&gorm.Session{})
		if err := gormlock.Touch(unchecked, &gone); !errors.Is(err, gorm.ErrRecordNotFound) || !strings.Contains(err.Error(), "toucheds id=7") {
			t.Errorf("a row that never was: %v", err)
		}
		a := stand.Made(t, db, touched{})
		if err := gormlock.Touch(unchecked.Where("id < 0"), &a); !errors.Is(err, gorm.ErrRecordNotFound) {
			t.Errorf("a condition that leaves the row out: %v", err)
		}
		stand.Must(t, gormlock.Touch(unchecked.Session(&gorm.Session{DryRun: true}), &touched{ID: a.ID}))
		stand.Must(t, gormlock.Touch(unchecked, &a))
		stand.Equal(t, "row", stand.Row[touched](t, db, a.ID).Version, 2)
		before := a
		stand.Must(t, db.Exec("DELETE FROM toucheds").Error)
		_ = stand.MustBeStale(t, gormlock.Touch(db, &a))
		if err := gormlock.Touch(unchecked, &a); !errors.Is(err, gorm.ErrRecordNotFound) {
			t.Errorf("a row that is gone: %v", err)
		}
		stand.Equal(t, "the struct", a, before)
	})
}

// TestVersionTriggerNeverGoesBack: whatever an update says about the version, the row's next one is later.
func TestVersionTriggerNeverGoesBack(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	stand.Must(t, db.Exec("ALTER TABLE accounts ALTER version DROP NOT NULL").Error)
	stand.Must(t, db.Exec(gormlock.VersionTrigger("accounts", "version")).Error)
	a := stand.Made(t, db, stand.Account{})
	for _, c := range []struct {
		set  string
		want int64
	}{
		{"version = 9", 9}, {"version = 1", 10}, {"version = 10", 11}, {"version = NULL", 12}, {"balance = 1", 13},
		{"version = 0, balance = 2", 14}, {"version = version + 1", 15},
	} {
		stand.Must(t, db.Exec("UPDATE accounts SET "+c.set).Error)
		stand.Equal(t, c.set, stand.Row[stand.Account](t, db, a.ID).Version, c.want)
	}
	stand.Must(t, db.Exec("ALTER TABLE accounts DISABLE TRIGGER USER; UPDATE accounts SET version = NULL; ALTER TABLE accounts ENABLE TRIGGER USER").Error)
	stand.Must(t, db.Exec("UPDATE accounts SET version = 0").Error)
	stand.Equal(t, "from NULL", stand.Row[stand.Account](t, db, a.ID).Version, 0)
}

// TestVersionTriggerOfAnyName: what stands in the name of a column is no end of the function's text.
func TestVersionTriggerOfAnyName(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, nil)
	for n, column := range []string{"v$$r", "v$", "$$ $q1$", "it's"} {
		table := fmt.Sprint("docs", n)
		stand.Must(t, db.Exec("CREATE TABLE "+table+` (id int, "`+column+`" bigint NOT NULL DEFAULT 1)`).Error)
		stand.Must(t, db.Exec(gormlock.VersionTrigger(table, column)).Error)
		stand.Must(t, db.Exec("INSERT INTO "+table+" VALUES (1)").Error)
		stand.Must(t, db.Exec("UPDATE "+table+" SET id = 2").Error)
		var version int
		stand.Must(t, db.Raw("SELECT \""+column+"\" FROM "+table).Scan(&version).Error)
		stand.Equal(t, column, version, 2)
	}
}
