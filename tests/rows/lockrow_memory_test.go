package rows_test

import (
	"database/sql"
	"errors"
	"reflect"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// desk has a column of each kind that memory can go wrong with.
type desk struct {
	ID      int64
	Drawers []deskDrawer
	Owner   string
	Size    int8
	Note    *string
	Tags    map[string]int `gorm:"serializer:json"`
	*DeskPlace
	LampID  *int64
	Lamp    *deskLamp
	Version int64 `gorm:"not null;default:1" gormlock:"version"`

	Label  string `gorm:"-"`
	hidden int
}

type DeskPlace struct {
	Floor int
	Room  string
}

type deskLamp struct{ ID int64 }

type deskDrawer struct {
	ID      int64
	DeskID  int64
	Content string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

var errDesk = errors.New("a desk that AfterFind does not like")

func (d *desk) AfterFind(*gorm.DB) error {
	if d.Owner == "bad" {
		return errDesk
	}
	d.Label += " read"
	return nil
}

// desks is desk 1, with a lamp and a drawer.
func desks(t *testing.T) *gorm.DB {
	t.Helper()
	db := stand.Versioned(t, []any{&deskLamp{}, &desk{}, &deskDrawer{}})
	stand.MustDo(t, db.Create(deskOne()))
	return db
}

func deskOne() *desk {
	note := "note"
	return &desk{
		ID: 1, Owner: "ann", Size: 3, Note: &note, Tags: map[string]int{"old": 1}, DeskPlace: &DeskPlace{Floor: 2, Room: "r"},
		Lamp: &deskLamp{ID: 1}, Drawers: []deskDrawer{{ID: 1}}, Label: "label", hidden: 7,
	}
}

// deskLocks are the ways to lock one desk.
var deskLocks = map[string]func(tx *gorm.DB, row *desk) error{
	"LockRow":              func(tx *gorm.DB, row *desk) error { return gormlock.LockRow(tx, row) },
	"LockRow, Try":         func(tx *gorm.DB, row *desk) error { return gormlock.LockRow(tx, row, gormlock.Try()) },
	"LockRows":             lockInSlice,
	"LockRows of pointers": func(tx *gorm.DB, row *desk) error { return gormlock.LockRows(tx, &[]*desk{row}) },
}

func lockInSlice(tx *gorm.DB, row *desk) error {
	rows := []desk{*row}
	err := gormlock.LockRows(tx, &rows)
	*row = rows[0]
	return err
}

// TestLockRowReadsNULL: what is NULL now is not kept from before, to be stored by the next Save.
func TestLockRowReadsNULL(t *testing.T) {
	t.Parallel()
	stand.Beside(t, deskLocks, func(t *testing.T, lock func(tx *gorm.DB, row *desk) error) {
		db := desks(t)
		var mine desk
		stand.MustDo(t, db.Take(&mine, 1))
		stand.MustDo(t, db.Exec("UPDATE desks SET owner = NULL, size = NULL, note = NULL, tags = NULL, floor = NULL, room = NULL, version = 2"))
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, lock(tx, &mine))
			if mine.Owner != "" || mine.Size != 0 || mine.Note != nil || len(mine.Tags) > 0 || mine.DeskPlace != nil && *mine.DeskPlace != (DeskPlace{}) {
				t.Errorf("read %+v", mine)
			}
			mine.Size = 4
			return tx.Save(&mine).Error
		}))
		var owner sql.NullString
		stand.MustDo(t, db.Raw("SELECT owner FROM desks").Scan(&owner))
		stand.Equal(t, "the owner that a rival took away", owner.String, "")
	})
}

// TestLockRowFailsWhole: on an error nothing of the row is in the struct.
func TestLockRowFailsWhole(t *testing.T) {
	t.Parallel()
	db := desks(t)
	for name, lock := range deskLocks {
		for what, c := range map[string]struct {
			change string
			ask    func(tx *gorm.DB) *gorm.DB
		}{
			"AfterFind":                   {change: "owner = 'bad'"},
			"a column that does not fit":  {change: "size = 1000"},
			"an association that is none": {change: "size = 5", ask: func(tx *gorm.DB) *gorm.DB { return tx.Preload("Nothing") }},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				stand.InTx(t, db, func(tx *gorm.DB) {
					stand.MustDo(t, tx.Exec("ALTER TABLE desks ALTER size TYPE int"))
					stand.MustDo(t, tx.Exec("UPDATE desks SET note = 'new', floor = 9, tags = NULL, version = 2, "+c.change))
					if c.ask != nil {
						tx = c.ask(tx).Session(&gorm.Session{})
					}
					row, want := deskOne(), deskOne()
					place := row.DeskPlace
					if err := lock(tx, row); err == nil {
						t.Fatal("no error")
					}
					if !reflect.DeepEqual(row, want) || row.DeskPlace != place {
						t.Errorf("the struct is %+v", row)
					}
				})
			})
		}
	}
}

// TestLockRowKeepsTheRest: only what was read is in the struct, with what AfterFind makes of it.
func TestLockRowKeepsTheRest(t *testing.T) {
	t.Parallel()
	db := desks(t)
	stand.InTx(t, db, func(tx *gorm.DB) {
		stand.MustDo(t, tx.Exec("UPDATE desks SET owner = 'bob', floor = 9, lamp_id = NULL"))
		row := deskOne()
		stand.Must(t, gormlock.LockRow(tx, row))
		stand.Equal(t, "owner", row.Owner, "bob")
		stand.Equal(t, "floor", row.Floor, 9)
		stand.Equal(t, "what AfterFind sets", row.Label, "label read")
		stand.Equal(t, "a field of the program", row.hidden, 7)
		if len(row.Drawers) != 1 || row.Lamp == nil {
			t.Errorf("the associations are %+v and %+v", row.Drawers, row.Lamp)
		}
		stand.MustDo(t, tx.Delete(&deskDrawer{}, 1))
		stand.Must(t, gormlock.LockRow(tx.Preload("Drawers").Joins("Lamp"), row))
		if len(row.Drawers) != 0 || row.Lamp != nil {
			t.Errorf("the associations that are gone are %+v and %+v", row.Drawers, row.Lamp)
		}
	})
}

// TestLockRowIsUnreadAfterARollback: a struct does not keep the version of a write that was rolled back, which would fit
// that of another writer.
func TestLockRowIsUnreadAfterARollback(t *testing.T) {
	t.Parallel()
	errBack := errors.New("roll back")
	for name, lock := range map[string]func(tx *gorm.DB) []*desk{
		"LockRow": func(tx *gorm.DB) []*desk {
			row := &desk{ID: 1}
			stand.Must(t, gormlock.LockRow(tx, row))
			return []*desk{row}
		},
		"LockRows": func(tx *gorm.DB) []*desk {
			rows := []desk{{ID: 2}, {ID: 1}}
			stand.Must(t, gormlock.LockRows(tx, &rows))
			return []*desk{&rows[1], &rows[0]}
		},
		"LockRows of pointers": func(tx *gorm.DB) []*desk {
			row := &desk{ID: 1}
			rows := []*desk{row, {ID: 2}}
			stand.Must(t, gormlock.LockRows(tx, &rows))
			rows[0] = nil
			return []*desk{row}
		},
		"LockRows of a part of a slice": func(tx *gorm.DB) []*desk {
			all := []desk{{ID: 2}, {ID: 1}, {ID: 2}}
			part := all[1:2]
			stand.Must(t, gormlock.LockRows(tx, &part))
			part = part[:0]
			_ = part
			return []*desk{&all[1]}
		},
		"one row twice": func(tx *gorm.DB) []*desk {
			rows := []desk{{ID: 1}, {ID: 1}}
			stand.Must(t, gormlock.LockRows(tx, &rows))
			return []*desk{&rows[0], &rows[1]}
		},
	} {
		for _, how := range []string{"transaction", "savepoint"} {
			t.Run(name+", "+how, func(t *testing.T) {
				db := desks(t)
				stand.MustDo(t, db.Create(&desk{ID: 2}))
				var rows []*desk
				body := func(tx *gorm.DB) error {
					stand.MustDo(t, tx.Model(&desk{}).Where("id = 1").Update("size", 7)) // makes version 2
					stand.MustDo(t, tx.Model(&deskDrawer{}).Where("id = 1").Update("content", "pens"))
					rows = lock(tx.Preload("Drawers").Session(&gorm.Session{}))
					stand.Equal(t, "version read", rows[0].Version, 2)
					stand.Equal(t, "version of the drawer", rows[0].Drawers[0].Version, 2)
					return errBack
				}
				if how == "savepoint" {
					stand.Must(t, db.Transaction(func(tx *gorm.DB) error { _ = tx.Transaction(body); return nil }))
				} else if err := db.Transaction(body); !errors.Is(err, errBack) {
					t.Fatal(err)
				}
				stand.MustDo(t, db.Model(&desk{}).Where("id = 1").Update("size", 8)) // another writer's version 2
				stand.MustDo(t, db.Model(&deskDrawer{}).Where("id = 1").Update("content", "ink"))
				for _, row := range rows {
					row.Owner = "overwritten"
					if err := db.Omit("Drawers").Save(row).Error; row.ID == 1 && err == nil {
						t.Errorf("another writer was overwritten from %+v", row)
					}
					for i := range row.Drawers {
						if err := db.Save(&row.Drawers[i]).Error; err == nil {
							t.Errorf("another writer was overwritten from %+v", row.Drawers[i])
						}
					}
				}
			})
		}
	}
}
