package rollbacks_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type copyOwner struct {
	ID      int64
	Name    string
	Kids    []copyKid `gorm:"foreignKey:OwnerID"`
	Tags    []copyTag `gorm:"many2many:copy_owner_tags"`
	Version int64     `gorm:"not null;default:1" gormlock:"version"`
}

type copyKid struct {
	ID      int64
	OwnerID *int64
	Text    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type copyTag struct {
	ID      int64
	Text    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

func fully(db *gorm.DB) *gorm.DB { return db.Session(&gorm.Session{FullSaveAssociations: true}) }

// What GORM copies within the association of a struct, a rollback reaches, or it counts as not read: the copies hold no version that was never
// committed. After a commit those of an owner that the transaction has written hold their rows' versions.
func TestCopiesWithinAnAssociation(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&copyOwner{}, &copyKid{}, &copyTag{}})
	writes := map[string]func(tx *gorm.DB, o *copyOwner) error{
		"save of the slices": func(tx *gorm.DB, o *copyOwner) error {
			return errors.Join(tx.Save(&o.Kids).Error, tx.Save(&o.Tags).Error)
		},
		"save of elements": func(tx *gorm.DB, o *copyOwner) error {
			return errors.Join(tx.Save(&o.Kids[1]).Error, tx.Save(&o.Tags[1]).Error)
		},
		"updates": func(tx *gorm.DB, o *copyOwner) error {
			return errors.Join(tx.Model(&o.Kids[1]).Update("text", "mine").Error, tx.Model(&o.Tags[1]).Update("text", "mine").Error)
		},
		"raw SQL and a read": func(tx *gorm.DB, o *copyOwner) error {
			return errors.Join(tx.Exec("UPDATE copy_kids SET version = version + 1").Error, tx.Exec("UPDATE copy_tags SET version = version + 1").Error,
				tx.Order("id").Find(&o.Kids, "owner_id = ?", o.ID).Error, tx.Order("id").Find(&o.Tags, []int64{o.Tags[0].ID, o.Tags[1].ID, o.Tags[2].ID}).Error)
		},
		"raw SQL and a scan": func(tx *gorm.DB, o *copyOwner) error {
			return errors.Join(tx.Raw("UPDATE copy_kids SET version = version + 1 WHERE owner_id = ? RETURNING *", o.ID).Scan(&o.Kids).Error,
				tx.Raw("UPDATE copy_tags SET version = version + 1 WHERE id IN ? RETURNING *", []int64{o.Tags[0].ID, o.Tags[1].ID, o.Tags[2].ID}).Scan(&o.Tags).Error)
		},
		"raw SQL and a scan apart": func(tx *gorm.DB, o *copyOwner) error {
			var kids []copyKid
			err := tx.Raw("UPDATE copy_kids SET version = version + 1 WHERE owner_id = ? RETURNING *", o.ID).Scan(&kids).Error
			o.Kids = kids
			return err
		},
		"full save, known": func(tx *gorm.DB, o *copyOwner) error { return fully(tx).Save(o).Error },
	}
	copying := map[string]func(tx *gorm.DB, o *copyOwner) error{
		"delete": func(tx *gorm.DB, o *copyOwner) error {
			return errors.Join(tx.Model(o).Association("Kids").Delete(&o.Kids[0]), tx.Model(o).Association("Tags").Delete(&o.Tags[0]))
		},
		"delete by key": func(tx *gorm.DB, o *copyOwner) error {
			return errors.Join(tx.Model(o).Association("Kids").Delete(&copyKid{ID: o.Kids[0].ID}), tx.Model(o).Association("Tags").Delete(&copyTag{ID: o.Tags[0].ID}))
		},
		"delete for good": func(tx *gorm.DB, o *copyOwner) error {
			return errors.Join(tx.Model(o).Association("Kids").Unscoped().Delete(&o.Kids[0]), tx.Model(o).Association("Tags").Unscoped().Delete(&o.Tags[0]))
		},
		"append": func(tx *gorm.DB, o *copyOwner) error {
			return errors.Join(tx.Model(o).Association("Kids").Append(&copyKid{Text: "new"}), tx.Model(o).Association("Tags").Append(&copyTag{Text: "new"}))
		},
		"append without the structs": func(tx *gorm.DB, o *copyOwner) error {
			return tx.Omit("Tags.*").Model(o).Association("Tags").Append(&o.Tags[0])
		},
	}
	for write, do := range writes {
		for then, copies := range copying {
			for end, within := range map[string]func(do func(tx *gorm.DB) error){
				"rollback": func(do func(tx *gorm.DB) error) {
					_ = db.Transaction(func(tx *gorm.DB) error { return errors.Join(do(tx), errUndo) })
				},
				"savepoint": func(do func(tx *gorm.DB) error) {
					stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
						_ = tx.Transaction(func(tx *gorm.DB) error { return errors.Join(do(tx), errUndo) })
						return nil
					}))
				},
				"commit": func(do func(tx *gorm.DB) error) { stand.Must(t, db.Transaction(do)) },
			} {
				name := write + ", " + then + ", " + end
				o := copyOwner{Kids: []copyKid{{Text: "a"}, {Text: "b"}, {Text: "c"}}, Tags: []copyTag{{Text: "a"}, {Text: "b"}, {Text: "c"}}}
				stand.MustDo(t, db.Create(&o))
				within(func(tx *gorm.DB) error {
					stand.Must(t, do(tx, &o))
					stand.Must(t, copies(tx, &o))
					return nil
				})
				known := write == "full save, known"
				for _, kid := range o.Kids {
					var row copyKid // a new one may have none
					if stand.MustDo(t, db.Limit(1).Find(&row, kid.ID)); kid.Version != row.Version && (known || kid.Version != stand.Unread) {
						t.Errorf("%s: %+v, its row %+v", name, kid, row)
					}
				}
				for _, tag := range o.Tags {
					var row copyTag
					if stand.MustDo(t, db.Limit(1).Find(&row, tag.ID)); tag.Version != row.Version && (known || tag.Version != stand.Unread) {
						t.Errorf("%s: %+v, its row %+v", name, tag, row)
					}
				}
			}
		}
	}
}

// The structs that the transaction has written itself are hidden only while GORM copies them.
func TestAssociationDelete_leavesOthersRead(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&copyOwner{}, &copyKid{}, &copyTag{}})
	o := copyOwner{Kids: []copyKid{{Text: "a"}, {Text: "b"}}}
	stand.MustDo(t, db.Create(&o))
	kid := o.Kids[1]
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Save(&kid))
		stand.Must(t, tx.Model(&o).Association("Kids").Delete(&o.Kids[0]))
		return tx.Model(&kid).Update("text", "again").Error
	}))
	stand.Equal(t, "kid", kid.Version, 3)
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Save(&kid))
		return tx.Model(&o).Association("Kids").Delete(&o.Kids[0])
	}))
	stand.Equal(t, "kid, committed", kid.Version, 4)
}

type deepOwner struct {
	ID      int64
	Kids    []deepKid `gorm:"foreignKey:OwnerID"`
	Version int64     `gorm:"not null;default:1" gormlock:"version"`
}

type deepKid struct {
	ID      int64
	OwnerID *int64
	Tag     copyTag
	TagID   int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// A struct within a child is copied with it.
func TestCopiesWithinAChild(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&deepOwner{}, &deepKid{}, &copyTag{}})
	for name, read := range map[string]func(tx *gorm.DB, o *deepOwner) error{
		"read before": func(*gorm.DB, *deepOwner) error { return nil },
		"read in it":  func(tx *gorm.DB, o *deepOwner) error { return tx.Preload("Kids.Tag").First(o, o.ID).Error },
		"read behind raw SQL": func(tx *gorm.DB, o *deepOwner) error {
			return errors.Join(tx.Exec("UPDATE copy_tags SET version = version + 1").Error, tx.Preload("Kids.Tag").First(o, o.ID).Error)
		},
		"read alone behind SQL": func(tx *gorm.DB, o *deepOwner) error {
			return errors.Join(tx.Exec("UPDATE copy_tags SET version = version + 1 WHERE id = ?", o.Kids[1].TagID).Error, tx.First(&o.Kids[1].Tag).Error)
		},
	} {
		for write, do := range map[string]func(tx *gorm.DB, o *deepOwner) error{
			"none":              func(*gorm.DB, *deepOwner) error { return nil },
			"save":              func(tx *gorm.DB, o *deepOwner) error { return tx.Save(&o.Kids[1].Tag).Error },
			"save of a kid":     func(tx *gorm.DB, o *deepOwner) error { return fully(tx).Save(&o.Kids[1]).Error },
			"save of the owner": func(tx *gorm.DB, o *deepOwner) error { return fully(tx).Save(o).Error },
		} {
			for _, commits := range []bool{false, true} {
				o := deepOwner{Kids: []deepKid{{Tag: copyTag{Text: "a"}}, {Tag: copyTag{Text: "b"}}}}
				stand.MustDo(t, db.Create(&o))
				_ = db.Transaction(func(tx *gorm.DB) error {
					stand.Must(t, read(tx, &o))
					stand.Must(t, do(tx, &o))
					stand.Must(t, tx.Model(&o).Association("Kids").Delete(&o.Kids[0]))
					if commits {
						return nil
					}
					return errUndo
				})
				kid := o.Kids[0]
				if row := stand.Row[copyTag](t, db, kid.TagID); kid.Tag.Version != row.Version && kid.Tag.Version != stand.Unread || commits && name == "read in it" && kid.Tag.Version == stand.Unread {
					t.Errorf("%s, %s, commits %v: %+v, its row %+v", name, write, commits, kid.Tag, row)
				}
				if row := stand.Row[deepKid](t, db, kid.ID); kid.Version != row.Version && kid.Version != stand.Unread || commits && name == "read in it" && kid.Version == stand.Unread {
					t.Errorf("%s, %s, commits %v: %+v, its row %+v", name, write, commits, kid, row)
				}
			}
		}
	}
}

// A read that is rolled back takes no version away from structs of an owner that was written, where nothing was copied. A slice that holds
// itself is no endless way.
func TestRollback_ofAReadLeavesOwnersRead(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&copyOwner{}, &copyKid{}, &copyTag{}, &knot{}})
	o := copyOwner{Kids: []copyKid{{Text: "a"}, {Text: "b"}}}
	stand.MustDo(t, db.Create(&o))
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, fully(tx).Save(&o))
		_ = tx.Transaction(func(tx *gorm.DB) error {
			var kids []copyKid
			stand.MustDo(t, tx.Exec("UPDATE copy_tags SET text = 'x'"))
			stand.MustDo(t, tx.Find(&kids, "owner_id = ?", o.ID))
			return errUndo
		})
		return tx.Save(&o.Kids[0]).Error
	}))
	stand.Equal(t, "kid", o.Kids[0].Version, stand.Row[copyKid](t, db, o.Kids[0].ID).Version)

	knots := []knot{{}, {}}
	stand.MustDo(t, db.Create(&knots))
	knots[0].Kids = knots
	_ = db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Omit("Kids").Save(&knots[0]))
		return errUndo
	})
	stand.Equal(t, "knot", knots[0].Version, 1)
}

// knot holds others of its kind.
type knot struct {
	ID      int64
	KnotID  *int64
	Kids    []knot
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// A child that was read along behind a write is unread after the rollback, even if GORM has put another slice into its parent meanwhile.
func TestRollback_ofAChildThatWasReadAlong(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&copyOwner{}, &copyKid{}, &copyTag{}})
	for name, change := range map[string]func(tx *gorm.DB, o *copyOwner) error{
		"nothing": func(*gorm.DB, *copyOwner) error { return nil },
		"append": func(tx *gorm.DB, o *copyOwner) error {
			return tx.Model(o).Association("Kids").Append(&copyKid{Text: "new"})
		},
		"replace": func(tx *gorm.DB, o *copyOwner) error { return tx.Model(o).Association("Kids").Replace(&o.Kids[0]) },
		"delete":  func(tx *gorm.DB, o *copyOwner) error { return tx.Model(o).Association("Kids").Delete(&o.Kids[1]) },
	} {
		o := copyOwner{Kids: []copyKid{{Text: "a"}, {Text: "b"}}}
		stand.MustDo(t, db.Create(&o))
		var kid *copyKid
		var read copyOwner
		_ = db.Transaction(func(tx *gorm.DB) error {
			stand.MustDo(t, tx.Model(&copyKid{}).Where("owner_id = ?", o.ID).Update("text", "mine"))
			stand.MustDo(t, tx.Preload("Kids").First(&read, o.ID))
			kid = &read.Kids[0]
			stand.Must(t, change(tx, &read))
			return errUndo
		})
		if kid.Version != stand.Unread || len(read.Kids) == 0 || read.Kids[0].Version > 1 {
			t.Errorf("%s: %+v, %+v", name, kid, read.Kids)
		}
	}
}
