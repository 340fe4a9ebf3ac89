package versions_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// defaulted has the kinds of columns of which an upsert of GORM stores something else than the struct holds.
type defaulted struct {
	ID        int64
	CabinetID int64
	Active    bool   `gorm:"default:true"`
	Most      int    `gorm:"default:10"`
	State     string `gorm:"size:20;default:open"`
	Pointer   *bool  `gorm:"default:true"`
	Token     string `gorm:"size:20;default:(lower('MADE'))"`
	None      string `gorm:"size:20;default:null"`
	Late      string `gorm:"size:20;<-:update"`
	Once      string `gorm:"size:20;<-:create"`
	ReadOnly  string `gorm:"size:20;->"`
	Plain     string `gorm:"size:20"`
	Moved     int64  `gorm:"autoUpdateTime:nano;default:(0)"`
	CreatedAt time.Time
	Version   int64 `gorm:"not null;default:1" gormlock:"version"`
}

type cabinet struct {
	ID      int64
	Name    string
	Kept    []defaulted
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// columns are those whose values do not depend on the row's place or the time.
func (d defaulted) columns() string {
	pointer := "nil"
	if d.Pointer != nil {
		pointer = fmt.Sprint(*d.Pointer)
	}
	return fmt.Sprintf("active %v most %d state %q pointer %s token %q none %q late %q once %q read %q plain %q created %s",
		d.Active, d.Most, d.State, pointer, d.Token, d.None, d.Late, d.Once, d.ReadOnly, d.Plain, d.CreatedAt.UTC().Format(time.DateTime))
}

var longAgo = time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)

// madeDefaulted creates a cabinet of two rows, and reads it.
func madeDefaulted(t *testing.T, db *gorm.DB) cabinet {
	t.Helper()
	yes := true
	row := func() defaulted {
		return defaulted{Active: true, Most: 5, State: "s", Pointer: &yes, Token: "t", None: "n", Once: "o", Plain: "p", CreatedAt: longAgo}
	}
	c := stand.Made(t, db, cabinet{Name: "c", Kept: []defaulted{row(), row()}})
	stand.Must(t, db.Session(&gorm.Session{NewDB: true}).Model(&defaulted{}).Where("cabinet_id = ?", c.ID).
		Clauses(gormlock.IgnoreVersion()).Updates(map[string]any{"late": "l", "plain": "q"}).Error)
	var read cabinet
	stand.Must(t, db.Preload("Kept", func(q *gorm.DB) *gorm.DB { return q.Order("id") }).First(&read, c.ID).Error)
	return read
}

// changesOfDefaulted are what a program does to a struct that it has read.
var changesOfDefaulted = map[string]func(d *defaulted){
	"zero": func(d *defaulted) {
		*d = defaulted{ID: d.ID, CabinetID: d.CabinetID, Version: d.Version, Moved: d.Moved, CreatedAt: d.CreatedAt}
	},
	"other": func(d *defaulted) {
		no := false
		*d = defaulted{
			ID: d.ID, CabinetID: d.CabinetID, Version: d.Version, Moved: d.Moved, Pointer: &no, Active: true, Most: 7, State: "other", Token: "other", None: "other",
			Late: "other", Once: "other", ReadOnly: "other", Plain: "other", CreatedAt: longAgo.Add(time.Hour),
		}
	},
	"none": func(*defaulted) {},
}

// waysToSaveDefaulted save all rows of a cabinet.
var waysToSaveDefaulted = map[string]func(db *gorm.DB, c *cabinet) error{
	"slice":    func(db *gorm.DB, c *cabinet) error { return db.Save(&c.Kept).Error },
	"pointers": func(db *gorm.DB, c *cabinet) error { return db.Save([]*defaulted{&c.Kept[0], &c.Kept[1]}).Error },
	"children": func(db *gorm.DB, c *cabinet) error {
		return db.Session(&gorm.Session{FullSaveAssociations: true}).Save(c).Error
	},
	"upsert":        func(db *gorm.DB, c *cabinet) error { return db.Clauses(stand.UpdateAll).Create(&c.Kept).Error },
	"upsert of one": func(db *gorm.DB, c *cabinet) error { return db.Clauses(stand.UpdateAll).Create(&c.Kept[0]).Error },
	"unchecked":     func(db *gorm.DB, c *cabinet) error { return db.Clauses(gormlock.IgnoreVersion()).Save(&c.Kept).Error },
}

// A struct without the time of creation says nothing of it: an upsert keeps it, as GORM does.
func TestDefaulted_noTimeOfCreation(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&cabinet{}, &defaulted{}}, func(t *testing.T, db *gorm.DB) {
		for way, save := range waysToSaveDefaulted {
			c := madeDefaulted(t, db)
			c.Kept[0].CreatedAt, c.Kept[0].Most = time.Time{}, 0
			stand.Must(t, save(db, &c))
			row := stand.Row[defaulted](t, db, c.Kept[0].ID)
			stand.Equal(t, way+": row", fmt.Sprint(row.CreatedAt.UTC(), row.Most), fmt.Sprint(longAgo, 0))
			stand.Equal(t, way+": struct", c.Kept[0].columns(), row.columns())
			c.Kept[0].Plain = "again"
			stand.Must(t, save(db, &c))
			row = stand.Row[defaulted](t, db, c.Kept[0].ID)
			stand.Equal(t, way+": again", fmt.Sprint(row.CreatedAt.UTC(), row.Plain), fmt.Sprint(longAgo, "again"))
		}
	})
}

var errUndone = errors.New("undone")

// An upsert of structs that were read stores what they hold, as Save of one does. A rollback restores them.
func TestDefaulted_upsertsStoreWhatStructsHold(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&cabinet{}, &defaulted{}}, func(t *testing.T, db *gorm.DB) {
		for change, do := range changesOfDefaulted {
			one := madeDefaulted(t, db).Kept[0]
			do(&one)
			stand.Must(t, db.Save(&one).Error)
			want := stand.Row[defaulted](t, db, one.ID).columns()
			for way, save := range waysToSaveDefaulted {
				name := change + ", " + way
				c := madeDefaulted(t, db)
				do(&c.Kept[0])
				before := c.Kept[0]
				err := db.Transaction(func(tx *gorm.DB) error {
					stand.Must(t, save(tx, &c))
					return errUndone
				})
				stand.Equal(t, name+": rolled back", errors.Is(err, errUndone), true)
				stand.Equal(t, name+": as before", c.Kept[0], before)

				stand.Must(t, save(db, &c))
				row := stand.Row[defaulted](t, db, c.Kept[0].ID)
				stand.Equal(t, name+": row", row.columns(), want)
				stand.Equal(t, name+": struct", c.Kept[0].columns(), want)
				stand.Equal(t, name+": the time of the update moved", row.Moved > before.Moved, true)
				stand.Equal(t, name+": version", c.Kept[0].Version, row.Version)
				if way != "upsert of one" {
					stand.Equal(t, name+": unchanged row", stand.Row[defaulted](t, db, c.Kept[1].ID).columns(), madeDefaulted(t, db).Kept[1].columns())
				}
			}
		}
	})
}

// New structs beside those that were read get defaults.
func TestDefaulted_newStructsGetDefaults(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&cabinet{}, &defaulted{}}, func(t *testing.T, db *gorm.DB) {
		for change, do := range changesOfDefaulted {
			one := madeDefaulted(t, db).Kept[0]
			do(&one)
			stand.Must(t, db.Save(&one).Error)
			one = stand.Row[defaulted](t, db, one.ID)

			c := madeDefaulted(t, db)
			do(&c.Kept[0])
			fresh := defaulted{CabinetID: c.ID, Late: "late", Token: "given", None: "given", Moved: 1}
			all := []defaulted{c.Kept[0], fresh, {ID: 500_000 + 1000*c.ID, CabinetID: c.ID, Late: "late", Token: "given", None: "given", Moved: 1}}
			stand.Must(t, db.Save(&all).Error)
			stand.Equal(t, change+": read", stand.Row[defaulted](t, db, all[0].ID).columns(), one.columns())
			for _, made := range all[1:] {
				row := stand.Row[defaulted](t, db, made.ID)
				stand.Equal(t, change+": struct", made.columns(), row.columns())
				stand.Equal(t, change+": recent", time.Since(row.CreatedAt) < time.Hour, true)
				row.CreatedAt = longAgo
				yes := true
				stand.Equal(t, change+": new", row.columns(), defaulted{
					Active: true, Most: 10, State: "open", Pointer: &yes, Token: "given", None: "given", CreatedAt: longAgo,
				}.columns())
			}
		}
	})
}

// A struct without a version overwrites a row, and leaves to it what GORM leaves.
func TestDefaulted_rowsOfOthersKeepTheirs(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&cabinet{}, &defaulted{}}, func(t *testing.T, db *gorm.DB) {
		c := madeDefaulted(t, db)
		c.Kept[0].CreatedAt, c.Kept[0].Late, c.Kept[0].Token = longAgo.Add(time.Hour), "mine", ""
		all := []defaulted{c.Kept[0], {ID: c.Kept[1].ID, CabinetID: c.ID, Plain: "over", Late: "not written", Token: "not written", None: "n", Moved: 1}}
		stand.Must(t, db.Clauses(stand.UpdateAll).Create(&all).Error)
		mine, other := stand.Row[defaulted](t, db, all[0].ID), stand.Row[defaulted](t, db, all[1].ID)
		stand.Equal(t, "mine", mine.columns(), c.Kept[0].columns())
		stand.Equal(t, "overwritten", other.Plain, "over")
		stand.Equal(t, "created", other.CreatedAt.UTC(), longAgo)
		stand.Equal(t, "late", other.Late, "l")
		stand.Equal(t, "token", other.Token, "t")
		stand.Equal(t, "active", other.Active, true)
	})
}

// An upsert of some columns stores the zeros of these.
func TestDefaulted_namedColumns(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&cabinet{}, &defaulted{}}, func(t *testing.T, db *gorm.DB) {
		c := madeDefaulted(t, db)
		changesOfDefaulted["zero"](&c.Kept[0])
		named := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"active", "token", "late", "plain"})}
		stand.Must(t, db.Clauses(named).Create(c.Kept[:1]).Error)
		row := stand.Row[defaulted](t, db, c.Kept[0].ID)
		stand.Equal(t, "row", fmt.Sprint(row.Active, row.Token, row.Late, row.Plain), fmt.Sprint(false, "", "", ""))
		stand.Equal(t, "not named", fmt.Sprint(row.Most, row.State, row.CreatedAt.UTC()), fmt.Sprint(5, "s", longAgo))
		stand.Equal(t, "struct", c.Kept[0].columns(), row.columns())

		stand.Must(t, db.Select("ID", "Token").Save(c.Kept[:1]).Error)
		c.Kept[0].Token = "set"
		stand.Must(t, db.Select("ID", "Token").Save(c.Kept[:1]).Error)
		c.Kept[0].CreatedAt, c.Kept[0].Most = time.Time{}, 0
		stand.Must(t, db.Omit("CreatedAt").Save(c.Kept[:1]).Error)
		row = stand.Row[defaulted](t, db, c.Kept[0].ID)
		stand.Equal(t, "omitted", fmt.Sprint(row.Most, row.CreatedAt.UTC()), fmt.Sprint(0, longAgo))
		stand.Equal(t, "selected", stand.Row[defaulted](t, db, c.Kept[0].ID).Token, "set")
	})
}

// SQLite has no DEFAULT that could stand beside a value.
func TestDefaulted_newStructsOnSQLite(t *testing.T) {
	t.Parallel()
	db := stand.OnSQLite(t, []any{&fromZero{}})
	read := stand.Made(t, db, fromZero{ID: 1, Active: true, Token: "t"})
	stand.Must(t, db.Model(&read).Update("token", "u").Error)
	err := db.Save([]fromZero{read, {}}).Error
	if err == nil || !strings.Contains(err.Error(), "save the new structs by themselves") {
		t.Error(err)
	}
	stand.Equal(t, "row", stand.Row[fromZero](t, db, 1), read)
}

// fromZero is a row whose first version is 0: a struct does not show whether it was read.
type fromZero struct {
	ID      int64
	Active  bool   `gorm:"default:true"`
	Token   string `gorm:"size:20;default:(lower('MADE'))"`
	Late    string `gorm:"size:20;<-:update"`
	Version int64  `gorm:"not null;default:0" gormlock:"version,initial=0"`
}

func TestDefaulted_firstVersionZero(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&fromZero{}}, func(t *testing.T, db *gorm.DB) {
		read := stand.Made(t, db, fromZero{Active: true, Token: "t"})
		read.Active, read.Token, read.Late = false, "", "late"
		all := []fromZero{read, {ID: read.ID + 1, Token: "new", Late: "not written"}}
		stand.Must(t, db.Clauses(stand.UpdateAll).Create(&all).Error)
		stand.Equal(t, "read", stand.Row[fromZero](t, db, read.ID), fromZero{read.ID, false, "", "late", 1})
		stand.Equal(t, "new", stand.Row[fromZero](t, db, read.ID+1), fromZero{read.ID + 1, true, "new", "", 0})
		stand.Equal(t, "struct", all[0], fromZero{read.ID, false, "", "late", 1})
	})
}

// unversionedYet is a row that was there before its version column.
type unversionedYet struct {
	ID      int64
	Active  bool   `gorm:"default:true"`
	Late    string `gorm:"size:20;<-:update"`
	Version int64  `gormlock:"version"`
}

func TestDefaulted_versionNull(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&unversionedYet{}}, func(t *testing.T, db *gorm.DB) {
		read := stand.Made(t, db, unversionedYet{Active: true})
		stand.Must(t, db.Exec("UPDATE unversioned_yets SET version = NULL").Error)
		read = stand.Row[unversionedYet](t, db, read.ID)
		read.Active, read.Late = false, "late"
		all := []unversionedYet{read, {Late: "not written"}}
		stand.Must(t, db.Save(&all).Error)
		row := stand.Row[unversionedYet](t, db, read.ID)
		stand.Equal(t, "read", fmt.Sprint([]any{row.Active, row.Late}), "[false late]")
		row = stand.Row[unversionedYet](t, db, all[1].ID)
		stand.Equal(t, "new", fmt.Sprint([]any{row.Active, row.Late}), "[true ]")
	})
}

// emptied is a row whose hook decides what is stored.
type emptied struct {
	ID      int64
	Active  bool   `gorm:"default:true"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
	Empty   bool   `gorm:"-"`
	Seen    string `gorm:"-"`
}

func (e *emptied) BeforeSave(*gorm.DB) error {
	e.Active = e.Active && !e.Empty
	return nil
}

func (e *emptied) AfterSave(*gorm.DB) error {
	e.Seen = fmt.Sprint(e.Active)
	return nil
}

func TestDefaulted_whatHooksMake(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&emptied{}}, func(t *testing.T, db *gorm.DB) {
		all := []emptied{stand.Made(t, db, emptied{Active: true})}
		all[0].Empty = true
		stand.Must(t, db.Save(&all).Error)
		stand.Equal(t, "row", stand.Row[emptied](t, db, all[0].ID).Active, false)
		stand.Equal(t, "struct", all[0].Active, false)
		stand.Equal(t, "after it", all[0].Seen, "false")
	})
}

// With IgnoreVersion a row gets all that its struct holds, zeros where the column has a default, with xmin too.
func TestUpsert_zerosBesideXmin(t *testing.T) {
	t.Parallel()
	type task struct {
		ID      int64
		Most    int    `gorm:"default:7"`
		Version uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
	}
	db := stand.Versioned(t, []any{&task{}})
	made := stand.Made(t, db, task{Most: 5})
	one := stand.Row[task](t, db, made.ID)
	one.Most = 0
	stand.Must(t, db.Clauses(gormlock.IgnoreVersion()).Save([]*task{&one}).Error)
	stand.Equal(t, "struct and row", [2]int{one.Most, stand.Row[task](t, db, made.ID).Most}, [2]int{})
}
