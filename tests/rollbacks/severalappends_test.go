package rollbacks_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type severalOwner struct {
	ID        int64
	Name      string
	Kids      []severalKid `gorm:"foreignKey:OwnerID"`
	Tags      []severalTag `gorm:"many2many:several_owner_tags"`
	UpdatedAt time.Time
	Version   int64 `gorm:"not null;default:1" gormlock:"version"`
}

type severalKid struct {
	ID, OwnerID int64
	Text        string
	Number      string
	UpdatedAt   time.Time
	Version     int64 `gorm:"not null;default:1" gormlock:"version"`
}

// AfterCreate writes the row again, as a program does that needs its key.
func (k *severalKid) AfterCreate(tx *gorm.DB) error {
	if k.Text != "numbered" {
		return nil
	}
	return tx.Model(k).Update("number", fmt.Sprint("N", k.ID)).Error
}

type severalTag struct {
	ID      int64
	Text    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

func severalOwnerOf(t *testing.T, db *gorm.DB) severalOwner {
	t.Helper()
	o := severalOwner{Kids: []severalKid{{Text: "a"}, {Text: "b"}}, Tags: []severalTag{{Text: "a"}, {Text: "b"}}}
	stand.MustDo(t, db.Create(&o))
	stand.MustDo(t, db.Exec("UPDATE several_kids SET updated_at = NULL WHERE owner_id = ?", o.ID)) // as another program leaves it
	var read severalOwner
	stand.MustDo(t, db.Preload("Kids").Preload("Tags").First(&read, o.ID))
	return read
}

// Between several Appends in one transaction, and after its commit, the children that the parent holds are read.
func TestSeveralAppends(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&severalOwner{}, &severalKid{}, &severalTag{}})
	before := map[string]func(tx *gorm.DB, o *severalOwner) error{
		"alone":               func(*gorm.DB, *severalOwner) error { return nil },
		"behind an update":    func(tx *gorm.DB, o *severalOwner) error { return tx.Model(o).Update("name", "x").Error },
		"behind a save":       func(tx *gorm.DB, o *severalOwner) error { return tx.Save(o).Error },
		"behind a kid's save": func(tx *gorm.DB, o *severalOwner) error { return tx.Save(&o.Kids[0]).Error },
		"behind a tag's save": func(tx *gorm.DB, o *severalOwner) error { return tx.Save(&o.Tags[0]).Error },
		"read inside": func(tx *gorm.DB, o *severalOwner) error {
			id := o.ID
			*o = severalOwner{}
			return tx.Preload("Kids").Preload("Tags").First(o, id).Error
		},
	}
	saveEach := func(tx *gorm.DB, o *severalOwner) (err error) {
		for i := range o.Kids {
			o.Kids[i].Text += "!"
			err = errors.Join(err, tx.Save(&o.Kids[i]).Error)
		}
		for i := range o.Tags {
			o.Tags[i].Text += "!"
			err = errors.Join(err, tx.Save(&o.Tags[i]).Error)
		}
		return err
	}
	stand.Beside(t, before, func(t *testing.T, first func(*gorm.DB, *severalOwner) error) {
		for n := 1; n <= 4; n++ {
			for _, text := range []string{"plain", "numbered"} {
				for _, inside := range []bool{false, true} {
					o := severalOwnerOf(t, db)
					stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
						if err := first(tx, &o); err != nil {
							return err
						}
						for range n {
							if err := errors.Join(tx.Model(&o).Association("Kids").Append(&severalKid{Text: text}), tx.Model(&o).Association("Tags").Append(&severalTag{Text: text})); err != nil {
								return err
							}
						}
						if inside {
							return saveEach(tx, &o)
						}
						return nil
					}))
					if err := saveEach(db, &o); err != nil {
						t.Errorf("%d, %s, inside %t: %v", n, text, inside, err)
					}
					gone := o.Kids[2]
					stand.MustDo(t, db.Exec("DELETE FROM several_kids WHERE id = ?", gone.ID)) // a rival
					stand.MustStale(t, db.Save(&o).Error)
				}
			}
		}
	})
}

// An Append that is refused has moved the children to a new slice all the same. A rollback finds them there.
func TestRollback_behindARefusedAppend(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&severalOwner{}, &severalKid{}, &severalTag{}})
	appends := map[string]func(tx *gorm.DB, o *severalOwner) error{
		"stale": func(tx *gorm.DB, o *severalOwner) error {
			stand.MustDo(t, db.Exec("UPDATE several_owners SET version = version + 1 WHERE id = ?", o.ID))
			return tx.Model(o).Association("Kids").Append(&severalKid{})
		},
		"a row lock": func(tx *gorm.DB, o *severalOwner) error {
			return tx.Clauses(gormlock.RowLock(gormlock.ForUpdate)).Model(o).Association("Kids").Append(&severalKid{})
		},
		"another version": func(tx *gorm.DB, o *severalOwner) error {
			return tx.Clauses(gormlock.ExpectVersion(7)).Model(o).Association("Kids").Append(&severalKid{})
		},
		"a dry run": func(tx *gorm.DB, o *severalOwner) error {
			return errors.Join(tx.Session(&gorm.Session{DryRun: true}).Model(o).Association("Kids").Append(&severalKid{}), errUndo)
		},
	}
	stand.Beside(t, appends, func(t *testing.T, refused func(*gorm.DB, *severalOwner) error) {
		for attempts := 1; attempts <= 3; attempts++ {
			o := severalOwnerOf(t, db)
			for range attempts {
				if db.Transaction(func(tx *gorm.DB) error {
					if err := tx.Model(&o.Kids[0]).Update("text", "mine").Error; err != nil {
						return err
					}
					return refused(tx, &o)
				}) == nil {
					t.Fatal("the Append was not refused")
				}
			}
			stand.MustDo(t, db.Model(&severalKid{}).Where("id = ?", o.Kids[0].ID).Update("text", "a rival's"))
			o.Kids[0].Text = "mine"
			stand.MustStale(t, db.Save(&o.Kids[0]).Error)
		}
	})
}

// What an owner of several holds is out of sight until GORM has copied all of it.
func TestRollback_ofAppendsToSeveralOwners(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&severalOwner{}, &severalKid{}, &severalTag{}})
	for _, text := range []string{"plain", "numbered"} {
		for _, full := range []bool{false, true} {
			owners := []severalOwner{severalOwnerOf(t, db), severalOwnerOf(t, db)}
			kids := []*severalKid{{Text: text}, {Text: text}}
			undone := db.Transaction(func(tx *gorm.DB) error {
				if err := tx.Session(&gorm.Session{FullSaveAssociations: full}).Model(&owners).Association("Kids").Append(kids[0], kids[1]); err != nil {
					return err
				}
				return errUndo
			})
			if !errors.Is(undone, errUndo) {
				t.Fatal(undone)
			}
			for _, kid := range kids {
				stand.Equal(t, fmt.Sprint(text, ", full ", full, ": what was given has a version"), kid.Version > 0, false)
			}
			for i := range owners {
				for k := range owners[i].Kids[:2] {
					stand.MustDo(t, db.Save(&owners[i].Kids[k]))
				}
			}
		}
	}
}
