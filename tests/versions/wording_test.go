package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// worded has a unique name.
type worded struct {
	ID      int64
	Name    string `gorm:"unique"`
	Balance int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// An error does not name a cause that is none.
func TestStaleError_namesTheCause(t *testing.T) {
	t.Parallel()
	const kept = "nothing was written: a trigger, a policy"
	for name, c := range map[string]struct {
		keeps     bool // a trigger keeps the row as it is
		write     func(db *gorm.DB, w *worded) error
		says, not string
	}{
		"ExpectVersion in bulk": {true, func(db *gorm.DB, _ *worded) error {
			return db.Model(&worded{}).Clauses(gormlock.ExpectVersion(1)).Where("name = 'a'").Update("balance", 2).Error
		}, kept, ""},
		"IfUnchanged": {true, func(db *gorm.DB, w *worded) error {
			return db.Model(w).Clauses(gormlock.IgnoreVersion(), gormlock.IfUnchanged(w)).Update("balance", 2).Error
		}, kept, "changed since"},
		"IfUnchanged, of one that changed": {false, func(db *gorm.DB, w *worded) error {
			before := *w
			before.Balance = 7
			return db.Model(w).Clauses(gormlock.IfUnchanged(&before, "balance")).Update("balance", 2).Error
		}, "balance changed since", kept},
		"IgnoreVersion, of a row that is gone": {false, func(db *gorm.DB, w *worded) error {
			if err := db.Exec("DELETE FROM wordeds WHERE id = 1").Error; err != nil {
				return err
			}
			return db.Clauses(gormlock.IgnoreVersion()).Save(w).Error
		}, "the row is gone", "NULL"},
		"an upsert that meets another row": {false, func(db *gorm.DB, w *worded) error {
			w.Name = "b"
			return db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, UpdateAll: true}).Create(w).Error
		}, "another row may have the values", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&worded{}})
			stand.Must(t, db.Create(&[]worded{{ID: 1, Name: "a"}, {ID: 2, Name: "b"}}).Error)
			if c.keeps {
				stand.Must(t, db.Exec(`CREATE FUNCTION keeps() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
					CREATE TRIGGER keeps BEFORE UPDATE ON wordeds FOR EACH ROW EXECUTE FUNCTION keeps()`).Error)
			}
			w := stand.Row[worded](t, db, 1)
			err := c.write(db, &w)
			if err == nil || !strings.Contains(err.Error(), c.says) || c.not != "" && strings.Contains(err.Error(), c.not) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A write on a db that has a text, as after Raw, is told what is wrong with it, and nothing of hooks.
func TestWrite_behindRaw(t *testing.T) {
	t.Parallel()
	db, w := stand.Stored(t, worded{ID: 1, Name: "a"})
	raw := func() *gorm.DB { return db.Raw("SELECT 1") }
	for name, err := range map[string]error{
		"Create": raw().Create(&worded{Name: "b"}).Error,
		"Save":   raw().Save(&w).Error,
		"Update": raw().Model(&w).Update("balance", 2).Error,
		"Delete": raw().Delete(&w).Error,
	} {
		if err == nil || !strings.Contains(err.Error(), "as after Raw") || strings.Contains(err.Error(), "hook") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
