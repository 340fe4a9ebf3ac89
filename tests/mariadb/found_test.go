package mariadb_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// MariaDB counts the rows that an update changes, or, with clientFoundRows, those that it finds. What an update leaves as it was
// is no conflict on either; what it does not find is.
func TestUnchangedIsNoConflict(t *testing.T) {
	t.Parallel()
	for name, param := range map[string]string{"changed rows": "maxAllowedPacket=0", "found rows": "clientFoundRows=true"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := mariaserver.Open(t, []any{&account{}, &plain{}}, mariaserver.Param(param))
			unchanged(t, db)
		})
	}
}

func unchanged(t *testing.T, db *gorm.DB) {
	a, p := account{Balance: 1, Note: "n"}, plain{Balance: 1, Note: "n"}
	stand.Must(t, db.Create(&a).Error)
	stand.Must(t, db.Create(&p).Error)
	before := p
	for name, write := range map[string]func(tx *gorm.DB) *gorm.DB{
		"an unversioned column": func(tx *gorm.DB) *gorm.DB { return tx.Model(&a).Update("note", "n") },
		"a slice":               func(tx *gorm.DB) *gorm.DB { return tx.Model(&[]account{a}).Update("note", "n") },
		"PreserveVersion":       func(tx *gorm.DB) *gorm.DB { return tx.Clauses(gormlock.PreserveVersion()).Save(&a) },
		"IfUnchanged": func(tx *gorm.DB) *gorm.DB {
			return tx.Clauses(gormlock.IfUnchanged(&before)).Model(&p).Update("balance", 1)
		},
		"IfUnchanged, Save": func(tx *gorm.DB) *gorm.DB { return tx.Clauses(gormlock.IfUnchanged(&before)).Save(&p) },
		"IfUnchanged, with a version": func(tx *gorm.DB) *gorm.DB {
			return tx.Clauses(gormlock.IfUnchanged(&a, "note")).Model(&a).Update("note", "n")
		},
	} {
		for transaction, begin := range stand.Begin {
			err := begin(db, func(tx *gorm.DB) error {
				written := write(tx)
				stand.Equal(t, name+": rows", written.RowsAffected, 1)
				return written.Error
			})
			if err != nil {
				t.Errorf("%s, %s: %v", name, transaction, err)
			}
			stand.Equal(t, name, stand.Row[account](t, db, a.ID), a)
			stand.Equal(t, name, stand.Row[plain](t, db, p.ID), p)
		}
	}
	stand.Must(t, db.Exec("UPDATE accounts SET version = 9").Error)
	stand.Must(t, db.Exec("UPDATE plains SET balance = 2, note = 'N'").Error)
	stand.MustStale(t, db.Model(&a).Update("note", "n").Error)
	stand.MustStale(t, db.Clauses(gormlock.IfUnchanged(&before)).Model(&p).Update("balance", 2).Error)
	stand.MustStale(t, db.Clauses(gormlock.IfUnchanged(&before, "balance")).Save(&p).Error)
	stand.Equal(t, "row", stand.Row[plain](t, db, p.ID).Note, "N")
}

type text struct {
	ID   int64
	Note *string `gorm:"size:100"`
	Long string
	When time.Time
	Rate float32
	At   time.Time `gorm:"precision:6"`
}

// IfUnchanged compares texts by their bytes: the collation takes others for the same, and ignores blanks at the end.
func TestIfUnchanged_comparesBytes(t *testing.T) {
	t.Parallel()
	db := open(t, &text{})
	note := "äpfel"
	row := text{ID: 1, Note: &note, Long: "long", When: time.Now(), At: time.Now()}
	stand.Must(t, db.Create(&row).Error)
	before, columns := row, []string{"note", "long", "when", "at"}
	for _, other := range []any{"Äpfel", "apfel", "äpfel ", nil} {
		stand.Must(t, db.Exec("UPDATE texts SET note = ?", other).Error)
		stand.MustStale(t, db.Clauses(gormlock.IfUnchanged(&before, columns...)).Model(&row).Update("long", "x").Error)
	}
	stand.Must(t, db.Exec("UPDATE texts SET note = ?", note).Error)
	stand.Must(t, db.Clauses(gormlock.IfUnchanged(&before, columns...)).Model(&row).Update("long", "x").Error)
	before.Note, before.Long = nil, "x"
	stand.Must(t, db.Exec("UPDATE texts SET note = NULL").Error)
	stand.Must(t, db.Clauses(gormlock.IfUnchanged(&before, columns...)).Model(&row).Update("long", "y").Error)
	err := db.Clauses(gormlock.IfUnchanged(&before)).Model(&row).Update("long", "z").Error
	if err == nil || !strings.Contains(err.Error(), "make it a double") {
		t.Error("a float:", err)
	}
	stand.Equal(t, "long", stand.Row[text](t, db, 1).Long, "y")
}

type second struct {
	ID      int64
	State   string    `gorm:"size:20"`
	Version time.Time `gorm:"type:datetime" gormlock:"version"`
}

type milli struct {
	ID      int64
	State   string    `gorm:"size:20"`
	Version time.Time `gormlock:"version"`
}

// A version of time moves with each write, whatever the precision of its column, and comes back as it is stored.
func TestVersionOfTime_neverStandsStill(t *testing.T) {
	t.Parallel()
	db := open(t, &second{}, &milli{})
	s, m := second{ID: 1}, milli{ID: 1}
	stand.Must(t, db.Create(&s).Error)
	stand.Must(t, db.Create(&m).Error)
	for range 5 {
		old, was := s, m
		stand.Must(t, db.Model(&s).Update("state", "same").Error)
		stand.Must(t, db.Save(&m).Error)
		if !s.Version.After(old.Version) || !m.Version.After(was.Version) {
			t.Error("the version stands still:", old.Version, s.Version, was.Version, m.Version)
		}
		stand.MustStale(t, db.Model(&old).Update("state", "late").Error)
		stand.MustStale(t, db.Save(&[]milli{was}).Error)
		stand.Must(t, db.Clauses(gormlock.IgnoreVersion()).Model(&second{ID: 1}).Update("state", "same").Error)
		stand.MustStale(t, db.Model(&s).Update("state", "late").Error)
		stand.Must(t, db.First(&s, 1).Error)
		list := []milli{m}
		stand.Must(t, db.Save(&list).Error)
		stand.Equal(t, "the struct", list[0], stand.Row[milli](t, db, 1))
		m = list[0]
		stand.Must(t, gormlock.Touch(db, &m))
		stand.Equal(t, "touched", m, stand.Row[milli](t, db, 1))
	}
}

type product struct {
	ID      int64
	Code    string `gorm:"size:20;uniqueIndex"`
	Price   int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// MariaDB finds the row of an upsert by any unique index. One that finds it by another than it names is an error, as it is on
// PostgreSQL; conditions that GORM's driver leaves out are refused.
func TestUpsert_otherIndex(t *testing.T) {
	t.Parallel()
	db := open(t, &product{})
	stand.Must(t, db.Create(&product{ID: 1, Code: "a", Price: 1}).Error)
	byID := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, UpdateAll: true}
	for name, err := range map[string]error{
		"a new row":    db.Clauses(byID).Create(&product{Code: "a", Price: 9}).Error,
		"another key":  db.Clauses(byID).Create(&product{ID: 5, Code: "a", Price: 9}).Error,
		"a loaded row": db.Save(&[]product{{ID: 5, Code: "a", Price: 9, Version: 1}}).Error,
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, conflict := range map[string]clause.OnConflict{
		"Where is not possible":        {Columns: byID.Columns, UpdateAll: true, Where: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "price < 5"}}}},
		"OnConstraint is not possible": {OnConstraint: "code", DoUpdates: clause.AssignmentColumns([]string{"price"})},
	} {
		if err := db.Clauses(conflict).Create(&product{ID: 1, Code: "a", Price: 9}).Error; err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	stand.Equal(t, "row", stand.Row[product](t, db, 1), product{ID: 1, Code: "a", Price: 1, Version: 1})
	byCode := clause.OnConflict{Columns: []clause.Column{{Name: "code"}}, DoUpdates: clause.AssignmentColumns([]string{"price"})}
	met := product{Code: "a", Price: 3}
	stand.Must(t, db.Clauses(byCode).Create(&met).Error)
	stand.Equal(t, "met", met, product{ID: 1, Code: "a", Price: 3, Version: 2})
}

// A create that is to do nothing where a row is there gives its struct the key of that row, by which GORM refers to it, and no
// version: it is not the row, and cannot overwrite it.
func TestUpsert_doNothing(t *testing.T) {
	t.Parallel()
	db := open(t, &product{})
	stand.Must(t, db.Create(&product{ID: 1, Code: "a", Price: 1}).Error)
	nothing := clause.OnConflict{DoNothing: true}
	there, other := product{Code: "a", Price: 9}, product{ID: 1, Code: "b", Price: 9}
	fresh := product{Code: "c", Price: 3}
	for _, one := range []*product{&there, &other, &fresh} {
		stand.Must(t, db.Clauses(nothing).Create(one).Error)
	}
	stand.Equal(t, "key", there.ID, 1)
	for _, one := range []product{there, other} {
		if err := db.Save(&one).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
			t.Error("a struct that was not stored is saved:", err)
		}
	}
	stand.Must(t, db.Model(&fresh).Update("price", 4).Error)
	many := []product{{Code: "a", Price: 9}, {Code: "d", Price: 5}}
	stand.Must(t, db.Clauses(nothing).Create(&many).Error)
	stand.Equal(t, "inserted", many[1], stand.Row[product](t, db, many[1].ID))
	if err := db.Save(&many[0]).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
		t.Error("a struct that was not stored is saved:", err)
	}
	stand.Equal(t, "row", stand.Row[product](t, db, 1), product{ID: 1, Code: "a", Price: 1, Version: 1})
}
