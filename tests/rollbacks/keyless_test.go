package rollbacks_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type uncommitted struct {
	ID      int64
	Name    string
	Note    string
	Kids    []uncommittedKid `gorm:"foreignKey:ParentID"`
	Gone    gorm.DeletedAt
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type uncommittedKid struct {
	ID, ParentID int64
	Note         string
	Version      int64 `gorm:"not null;default:1" gormlock:"version"`
}

// namedByHook gets its key from a hook, before the INSERT.
type namedByHook struct {
	ID      string `gorm:"primaryKey"`
	Name    string `gorm:"unique"`
	Status  string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

func (n *namedByHook) BeforeCreate(*gorm.DB) error { n.ID = "made of " + n.Name; return nil }

// endings let a transaction create a struct, and end without a commit.
func endings() map[string]func(t *testing.T, db *gorm.DB, create func(tx *gorm.DB)) {
	closure := func(run func(db *gorm.DB, body func(tx *gorm.DB) error)) func(*testing.T, *gorm.DB, func(*gorm.DB)) {
		return func(_ *testing.T, db *gorm.DB, create func(tx *gorm.DB)) {
			run(db, func(tx *gorm.DB) error { create(tx); return errUndo })
		}
	}
	ended := func(end func(tx *gorm.DB, stop func())) func(*testing.T, *gorm.DB, func(*gorm.DB)) {
		return func(t *testing.T, db *gorm.DB, create func(tx *gorm.DB)) {
			ctx, stop := context.WithCancel(t.Context())
			tx := db.WithContext(ctx).Begin()
			create(tx)
			end(tx, stop)
			t.Cleanup(func() { stop(); tx.Rollback() })
		}
	}
	return map[string]func(*testing.T, *gorm.DB, func(*gorm.DB)){
		"error":   closure(func(db *gorm.DB, body func(*gorm.DB) error) { _ = db.Transaction(body) }),
		"retried": closure(func(db *gorm.DB, body func(*gorm.DB) error) { _ = gormlock.Transaction(db, body) }),
		"nested": closure(func(db *gorm.DB, body func(*gorm.DB) error) {
			_ = db.Transaction(func(tx *gorm.DB) error { _ = tx.Transaction(body); return nil })
		}),
		"rollback":           ended(func(tx *gorm.DB, _ func()) { tx.Rollback() }),
		"aborted":            ended(func(tx *gorm.DB, _ func()) { tx.Exec("SELECT 1/0") }),
		"ctx":                ended(func(_ *gorm.DB, stop func()) { stop() }),
		"ctx, then rollback": ended(func(tx *gorm.DB, stop func()) { stop(); tx.Rollback() }),
	}
}

func mustTakeNoKey(t *testing.T, err error) {
	t.Helper()
	if stand.MustBeUnread(t, err); !strings.Contains(err.Error(), "Create it again") {
		t.Errorf("the error does not name the cure: %v", err)
	}
}

// A struct whose row was never committed has no key. A write of it under conditions is not one of all rows that they find.
func TestRollback_structWithoutItsKeyWritesNoOtherRow(t *testing.T) {
	t.Parallel()
	everywhere := &gorm.Session{AllowGlobalUpdate: true}
	forms := map[string]func(db *gorm.DB, a *uncommitted) error{
		"Update": func(db *gorm.DB, a *uncommitted) error {
			return db.Model(a).Where("name = ?", "running").Update("note", "x").Error
		},
		"UpdateColumn": func(db *gorm.DB, a *uncommitted) error {
			return db.Model(a).Where("name = ?", "running").UpdateColumn("note", "x").Error
		},
		"Updates": func(db *gorm.DB, a *uncommitted) error {
			return db.Model(a).Where("name = ?", "running").Updates(uncommitted{Note: "x"}).Error
		},
		"Updates map": func(db *gorm.DB, a *uncommitted) error {
			return db.Model(a).Where("name = ?", "running").Updates(map[string]any{"note": "x"}).Error
		},
		"Updates itself": func(db *gorm.DB, a *uncommitted) error {
			a.Note = "x"
			return db.Where("name = ?", "running").Updates(a).Error
		},
		"Select Updates": func(db *gorm.DB, a *uncommitted) error {
			a.Note = "x"
			return db.Where("name = ?", "running").Select("*").Updates(a).Error
		},
		"slice": func(db *gorm.DB, a *uncommitted) error {
			return db.Model([]*uncommitted{a}).Where("name = ?", "running").Update("note", "x").Error
		},
		"everywhere": func(db *gorm.DB, a *uncommitted) error {
			return db.Session(everywhere).Model(a).Update("note", "x").Error
		},
		"IgnoreVersion": func(db *gorm.DB, a *uncommitted) error {
			return db.Clauses(gormlock.IgnoreVersion()).Model(a).Where("name = ?", "running").Update("note", "x").Error
		},
		"Delete": func(db *gorm.DB, a *uncommitted) error { return db.Where("name = ?", "running").Delete(a).Error },
		"Delete for good": func(db *gorm.DB, a *uncommitted) error {
			return db.Unscoped().Where("name = ?", "running").Delete(a).Error
		},
		"Delete by model": func(db *gorm.DB, a *uncommitted) error {
			return db.Model(a).Where("name = ?", "running").Delete(&uncommitted{}).Error
		},
		"Delete slice": func(db *gorm.DB, a *uncommitted) error {
			return db.Where("name = ?", "running").Delete([]*uncommitted{a}).Error
		},
	}
	byKey := map[string]func(db *gorm.DB, a *uncommitted) error{ // the values of a struct without a key, for another model
		"of the model": func(db *gorm.DB, a *uncommitted) error {
			a.Note = "x"
			return db.Model(&uncommitted{}).Where("name = ?", "running").Updates(a).Error
		},
		"append": func(db *gorm.DB, a *uncommitted) error {
			return db.Model(a).Association("Kids").Append(&uncommittedKid{Note: "mine"})
		},
	}
	stand.Beside(t, endings(), func(t *testing.T, end func(*testing.T, *gorm.DB, func(*gorm.DB))) {
		db := stand.Versioned(t, []any{&uncommitted{}, &uncommittedKid{}})
		stand.MustDo(t, db.Create(&[]uncommitted{{Name: "running", Kids: []uncommittedKid{{Note: "k"}}}, {Name: "running"}}))
		made := func(name string) *uncommitted {
			a := uncommitted{Name: name}
			end(t, db, func(tx *gorm.DB) { stand.MustDo(t, tx.Create(&a)) })
			return &a
		}
		mustBeSame := func(what string) {
			t.Helper()
			var rows, kids int64
			stand.MustDo(t, db.Model(&uncommitted{}).Where("name = 'running' AND note = '' AND version = 1").Count(&rows))
			stand.MustDo(t, db.Model(&uncommittedKid{}).Where("note = 'k' AND parent_id = 1").Count(&kids))
			stand.Equal(t, what+": rows", rows, 2)
			stand.Equal(t, what+": children", kids, 1)
		}
		for name, form := range forms {
			for _, changed := range []bool{false, true} {
				a := made("running")
				if changed {
					a.Name = "failed"
				}
				if err := form(db, a); !errors.Is(err, gormlock.ErrVersionMissing) || !strings.Contains(err.Error(), "Create it again") {
					t.Errorf("%s: %v", name, err)
				}
				stand.Equal(t, name+": key", a.ID, 0)
				mustBeSame(name)
				if err := form(db, a); !errors.Is(err, gormlock.ErrVersionMissing) {
					t.Errorf("%s, again: %v", name, err)
				}
				mustBeSame(name + ", again")
			}
		}
		a := made("running")
		if err := gormlock.Touch(db.Where("name = ?", "running"), a); !errors.Is(err, gorm.ErrPrimaryKeyRequired) {
			t.Errorf("Touch: %v", err)
		}
		mustBeSame("Touch")
		for name, form := range byKey {
			a := made("running")
			if err := form(db, a); err == nil && a.ID == 0 {
				t.Errorf("%s: %+v", name, a)
			}
			mustBeSame(name)
		}
		err := db.Session(&gorm.Session{}).Transaction(func(tx *gorm.DB) error {
			return tx.Model(made("running")).Where("name = ?", "running").Update("note", "x").Error
		})
		mustTakeNoKey(t, err)
		mustBeSame("in a transaction")
	})
}

// Such a struct can be stored again, and is free then. So is one that the program has emptied, or into which it has read a row.
func TestRollback_structWithoutItsKeyIsStoredAgain(t *testing.T) {
	t.Parallel()
	stand.Beside(t, endings(), func(t *testing.T, end func(*testing.T, *gorm.DB, func(*gorm.DB))) {
		db := stand.Versioned(t, []any{&uncommitted{}, &uncommittedKid{}})
		other := uncommitted{Name: "other"}
		stand.MustDo(t, db.Create(&other))
		for name, store := range map[string]func(a *uncommitted) error{
			"Create":          func(a *uncommitted) error { return db.Create(a).Error },
			"Save":            func(a *uncommitted) error { return db.Save(a).Error },
			"Save of a slice": func(a *uncommitted) error { return db.Save([]*uncommitted{a}).Error },
			"Save with Omit":  func(a *uncommitted) error { return db.Omit("Note").Save(a).Error },
			"Save in a transaction": func(a *uncommitted) error {
				return db.Transaction(func(tx *gorm.DB) error { return tx.Save(a).Error })
			},
			"refused, then Save": func(a *uncommitted) error {
				stand.MustBeUnread(t, db.Model(a).Where("name = ?", "a").Update("note", "x").Error)
				return db.Save(a).Error
			},
			"read": func(a *uncommitted) error { *a = uncommitted{}; return db.First(a, other.ID).Error },
		} {
			a := uncommitted{Name: "a", Kids: []uncommittedKid{{Note: "k"}}}
			end(t, db, func(tx *gorm.DB) { stand.MustDo(t, tx.Create(&a)) })
			if err := store(&a); err != nil || a.ID == 0 {
				t.Errorf("%s: %+v: %v", name, a, err)
				continue
			}
			stored := stand.Row[uncommitted](t, db, a.ID)
			stand.Equal(t, name+": version", a.Version, stored.Version)
			var kids int64
			stand.MustDo(t, db.Model(&uncommittedKid{}).Where("parent_id = ?", a.ID).Count(&kids))
			stand.Equal(t, name+": children", kids, int64(len(a.Kids)))
			stand.MustDo(t, db.Model(&a).Where("name = ?", a.Name).Update("note", "mine"))
			stand.MustDo(t, db.Save(&a))
			stand.MustDo(t, db.Model(&uncommittedKid{}).Where("parent_id = ?", a.ID).Delete(&uncommittedKid{}))
			a.ID, a.Kids = 0, nil
			stand.Must(t, db.Model(&a).Where("name = ?", "nobody").Update("note", "x").Error)
		}
		a := uncommitted{Name: "a"}
		end(t, db, func(tx *gorm.DB) { stand.MustDo(t, tx.Create(&a)) })
		a = uncommitted{}
		stand.MustDo(t, db.Model(&a).Where("name = ?", "other").Update("note", "all"))
		stand.MustDo(t, db.Where("name = ?", "other").Updates(&uncommitted{Note: "new"}))
	})
}

// A hook gives a struct its key, and its INSERT fails or is undone: the struct has no key either.
func TestRollback_keyOfAHookThatIsTakenBack(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&namedByHook{}}, func(t *testing.T, db *gorm.DB) {
		stand.MustDo(t, db.Create(&[]*namedByHook{{Name: "a", Status: "running"}, {Name: "b", Status: "running"}}))
		for name, create := range map[string]func(n *namedByHook){
			"undone": func(n *namedByHook) {
				_ = db.Transaction(func(tx *gorm.DB) error { stand.MustDo(t, tx.Create(n)); return errUndo })
			},
			"undone in a list": func(n *namedByHook) {
				_ = db.Transaction(func(tx *gorm.DB) error { stand.MustDo(t, tx.Create([]*namedByHook{n})); return errUndo })
			},
			"failed": func(n *namedByHook) { n.Name = "a"; _ = db.Create(n).Error },
		} {
			n := namedByHook{Name: "c", Status: "running"}
			create(&n)
			stand.Equal(t, name+": key", n.ID, "")
			mustTakeNoKey(t, db.Model(&n).Where("status = ?", "running").Update("status", "failed").Error)
			var rows int64
			stand.MustDo(t, db.Model(&namedByHook{}).Where("status = 'running' AND version = 1").Count(&rows))
			stand.Equal(t, name, rows, 2)
		}
	})
}
