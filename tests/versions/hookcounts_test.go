package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// counted has a hook from before its model had a version of gormlock: it counts itself.
type counted struct {
	ID      int64
	Balance int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
	by      int64
	clause  bool
}

func (c *counted) BeforeUpdate(tx *gorm.DB) error {
	switch {
	case c.by == 0:
	case c.clause:
		tx.Statement.AddClause(clause.Set{{Column: clause.Column{Name: "version"}, Value: c.Version + c.by}, {Column: clause.Column{Name: "balance"}, Value: 50}})
	default:
		tx.Statement.SetColumn("Version", c.Version+c.by)
	}
	return nil
}

// A version that a hook puts into what is updated is not the one that the caller read: a struct that is one behind would overwrite.
func TestUpdate_whoseHookCounts(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&counted{}}, func(t *testing.T, db *gorm.DB) {
		id := int64(0)
		for name, update := range map[string]func(c *counted) error{
			"Update":         func(c *counted) error { return db.Model(c).Update("balance", 50).Error },
			"Updates, map":   func(c *counted) error { return db.Model(c).Updates(map[string]any{"balance": 50}).Error },
			"Updates":        func(c *counted) error { return db.Model(c).Updates(counted{Balance: 50}).Error },
			"Updates, other": func(c *counted) error { return db.Model(c).Updates(&counted{Balance: 50}).Error },
			"Save":           func(c *counted) error { c.Balance = 50; return db.Save(c).Error },
			"own Set": func(c *counted) error {
				c.clause = true
				return db.Model(c).Updates(map[string]any{"balance": 50}).Error
			},
		} {
			for by := range int64(3) {
				for behind := range int64(3) {
					id++
					c := counted{ID: id, Balance: 10}
					stand.Must(t, db.Create(&c).Error)
					for range behind {
						stand.Must(t, db.Model(&counted{}).Where("id = ?", id).Update("balance", 20).Error)
					}
					c.by = by
					err := update(&c)
					if behind > 0 && err == nil {
						t.Errorf("%s, which counts %d, of a struct %d behind: the rival's balance is lost", name, by, behind)
					}
					if err != nil && behind == 0 && (by == 0 || !strings.Contains(err.Error(), "take it out there")) {
						t.Errorf("%s, which counts %d: %v", name, by, err)
					}
					if got := stand.Row[counted](t, db, id).Balance; behind > 0 && got != 20 || err != nil && got == 50 {
						t.Errorf("%s, which counts %d, of a struct %d behind: %d", name, by, behind, got)
					}
				}
			}
		}
	})
}

// renumbered has a hook that gives the struct another key.
type renumbered struct {
	ID      int64
	Balance int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
	to      int64
}

func (r *renumbered) renumber() error {
	if r.to > 0 {
		r.ID = r.to
	}
	return nil
}

func (r *renumbered) BeforeUpdate(*gorm.DB) error { return r.renumber() }
func (r *renumbered) BeforeDelete(*gorm.DB) error { return r.renumber() }

// A write of a struct is one of the row that its caller named.
func TestWrite_whoseHookChangesTheKey(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(db *gorm.DB, r *renumbered) error{
		"Update":  func(db *gorm.DB, r *renumbered) error { return db.Model(r).Update("balance", 50).Error },
		"Updates": func(db *gorm.DB, r *renumbered) error { return db.Model(r).Updates(renumbered{Balance: 50}).Error },
		"Save":    func(db *gorm.DB, r *renumbered) error { r.Balance = 50; return db.Save(r).Error },
		"SaveMerged": func(db *gorm.DB, r *renumbered) error {
			r.Balance = 50
			return gormlock.SaveMerged(db, r, &renumbered{ID: 1, Balance: 10, Version: 1})
		},
		"slice": func(db *gorm.DB, r *renumbered) error {
			return db.Model([]*renumbered{r}).Update("balance", 50).Error
		},
		"Delete":        func(db *gorm.DB, r *renumbered) error { return db.Delete(r).Error },
		"Delete, slice": func(db *gorm.DB, r *renumbered) error { return db.Delete([]*renumbered{r}).Error },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stand.OnBoth(t, []any{&renumbered{}}, func(t *testing.T, db *gorm.DB) {
				stand.Must(t, db.Create(&[]renumbered{{ID: 1, Balance: 10}, {ID: 2, Balance: 10}}).Error)
				r := stand.Row[renumbered](t, db, 1)
				r.to = 2
				if err := write(db, &r); err == nil || !strings.Contains(err.Error(), "another key") {
					t.Errorf("%v", err)
				}
				var now []renumbered
				stand.Must(t, db.Order("id").Find(&now).Error)
				stand.Equal(t, "rows", len(now), 2)
				stand.Equal(t, "balance", now[1].Balance, 10)
				r.ID, r.to = 1, 0
				stand.Must(t, write(db, &r))
			})
		})
	}
}

// tenanted has a hook that fills in a part of its key, and spells the other as the server does.
type tenanted struct {
	Tenant  int64  `gorm:"primaryKey;autoIncrement:false"`
	Ref     string `gorm:"primaryKey;type:uuid"`
	Text    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

func (r *tenanted) BeforeSave(*gorm.DB) error {
	r.Tenant, r.Ref = 7, strings.ToLower(r.Ref)
	return nil
}

// A hook may complete a key, and write it as the server does.
func TestWrite_whoseHookCompletesTheKey(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&tenanted{}})
	const ref = "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"
	stand.Must(t, db.Create(&tenanted{Ref: ref, Text: "a"}).Error)
	stand.Must(t, db.Model(&tenanted{Ref: ref, Version: 1}).Update("text", "b").Error)
	stand.Must(t, db.Save(&tenanted{Tenant: 7, Ref: ref, Version: 2, Text: "c"}).Error)
	stand.Must(t, db.Save(&tenanted{Tenant: 7, Ref: strings.ToLower("B" + ref[1:]), Text: "new"}).Error)
	if err := db.Save(&tenanted{Tenant: 8, Ref: ref, Version: 3, Text: "of another"}).Error; err == nil {
		t.Error("the row of another tenant was written")
	}
	stand.Equal(t, "rows", db.Find(&[]tenanted{}, "text IN ('c', 'new')").RowsAffected, 2)
}

// resorted has a hook that runs in a Save of a slice too.
type resorted struct {
	ID      int64
	Balance int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
	to      int64
}

func (r *resorted) BeforeSave(*gorm.DB) error {
	if r.to > 0 {
		r.ID = r.to
	}
	return nil
}

// A Save of a slice is one of the rows that its structs were read from.
func TestSaveOfASlice_whoseHookChangesTheKey(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&resorted{}}, func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Create(&[]resorted{{ID: 1, Balance: 10}, {ID: 2, Balance: 10}}).Error)
		r := stand.Row[resorted](t, db, 1)
		r.Balance, r.to = 50, 2
		if err := db.Save(&[]*resorted{&r}).Error; err == nil || !strings.Contains(err.Error(), "another key") {
			t.Errorf("%v", err)
		}
		stand.Equal(t, "rows", db.Find(&[]resorted{}, "balance = 10").RowsAffected, 2)
	})
}
