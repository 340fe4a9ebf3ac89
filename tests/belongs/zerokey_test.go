package belongs_test

import (
	"context"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	tenant struct { // 0 holds what all tenants share
		ID      int64    `gorm:"primaryKey;autoIncrement:false"`
		Notes   []*note  `gorm:"foreignKey:TenantID"`
		Motto   *motto   `gorm:"foreignKey:TenantID"`
		Stamps  []*stamp `gorm:"foreignKey:TenantID"`
		Bylaws  []*bylaw `gorm:"foreignKey:TenantID"`
		Version int64    `gorm:"not null;default:1" gormlock:"version"`
	}
	note struct {
		TenantID int64 `gorm:"primaryKey;autoIncrement:false"`
		No       int64 `gorm:"primaryKey;autoIncrement:false"`
		Tenant   *tenant
		Text     string
		Version  int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	motto struct {
		TenantID int64 `gorm:"primaryKey;autoIncrement:false"`
		Kind     int64 `gorm:"primaryKey;autoIncrement:false"`
		Text     string
		Version  int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	stamp struct {
		TenantID int64 `gorm:"primaryKey;autoIncrement:false"`
		No       int64 `gorm:"primaryKey;autoIncrement:false"`
		Tenant   *tenant
		Text     string
		Fence    int64 `gorm:"not null;default:0" gormlock:"fence,key=stamp"`
	}
	bylaw struct {
		TenantID int64   `gorm:"primaryKey;autoIncrement:false"`
		No       int64   `gorm:"primaryKey;autoIncrement:false"`
		Tenant   *tenant `gormlock:"root"`
		Text     string
	}
	ofTenant struct{}
)

func (n *note) BeforeSave(tx *gorm.DB) error {
	if id, ok := tx.Statement.Context.Value(ofTenant{}).(int64); ok && n.TenantID == 0 {
		n.TenantID = id
	}
	return nil
}

// A zero is a value of a part of a key like any other: a struct of the row (0, 1) does not become the row (2, 1).
func TestKey_withAZeroPart(t *testing.T) {
	t.Parallel()
	full := func(db *gorm.DB) *gorm.DB { return db.Session(&gorm.Session{FullSaveAssociations: true}) }
	type of struct {
		note  *note
		motto *motto
		stamp *stamp
		bylaw *bylaw
		two   *tenant
	}
	for name, write := range map[string]func(db *gorm.DB, o of) error{
		"Save":            func(db *gorm.DB, o of) error { o.note.Tenant = o.two; return db.Save(o.note).Error },
		"Save of a slice": func(db *gorm.DB, o of) error { o.note.Tenant = o.two; return db.Save([]*note{o.note}).Error },
		"Update": func(db *gorm.DB, o of) error {
			o.note.Tenant = o.two
			return db.Model(o.note).Update("text", "mine").Error
		},
		"Updates": func(db *gorm.DB, o of) error { o.note.Tenant = o.two; return db.Updates(o.note).Error },
		"Select": func(db *gorm.DB, o of) error {
			o.note.Tenant = o.two
			return db.Select("Tenant", "TenantID").Updates(o.note).Error
		},
		"upsert": func(db *gorm.DB, o of) error {
			o.note.Tenant = o.two
			return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(o.note).Error
		},
		"children":           func(db *gorm.DB, o of) error { o.two.Notes = []*note{o.note}; return db.Save(o.two).Error },
		"children, full":     func(db *gorm.DB, o of) error { o.two.Notes = []*note{o.note}; return full(db).Save(o.two).Error },
		"Append":             func(db *gorm.DB, o of) error { return db.Model(o.two).Association("Notes").Append(o.note) },
		"Append, full":       func(db *gorm.DB, o of) error { return full(db).Model(o.two).Association("Notes").Append(o.note) },
		"Append of a parent": func(db *gorm.DB, o of) error { return db.Model(o.note).Association("Tenant").Append(o.two) },
		"Replace":            func(db *gorm.DB, o of) error { return db.Model(o.note).Association("Tenant").Replace(o.two) },
		"a hook, Save":       func(db *gorm.DB, o of) error { return db.WithContext(inTenant(t, 2)).Save(o.note).Error },
		"a hook, slice":      func(db *gorm.DB, o of) error { return db.WithContext(inTenant(t, 2)).Save([]*note{o.note}).Error },
		"a hook, Update": func(db *gorm.DB, o of) error {
			return db.WithContext(inTenant(t, 2)).Model(o.note).Update("text", "mine").Error
		},
		"one child, full":         func(db *gorm.DB, o of) error { o.two.Motto = o.motto; return full(db).Save(o.two).Error },
		"a fence, Save":           func(db *gorm.DB, o of) error { o.stamp.Tenant = o.two; return db.Save(o.stamp).Error },
		"a fence, slice":          func(db *gorm.DB, o of) error { o.stamp.Tenant = o.two; return db.Save([]*stamp{o.stamp}).Error },
		"a fence, children, full": func(db *gorm.DB, o of) error { o.two.Stamps = []*stamp{o.stamp}; return full(db).Save(o.two).Error },
		"a fence, Append":         func(db *gorm.DB, o of) error { return db.Model(o.stamp).Association("Tenant").Append(o.two) },
		"a root, Save":            func(db *gorm.DB, o of) error { o.bylaw.Tenant = o.two; return db.Save(o.bylaw).Error },
		"a root, slice":           func(db *gorm.DB, o of) error { o.bylaw.Tenant = o.two; return db.Save([]*bylaw{o.bylaw}).Error },
		"a root, children, full":  func(db *gorm.DB, o of) error { o.two.Bylaws = []*bylaw{o.bylaw}; return full(db).Save(o.two).Error },
		"a root, Append":          func(db *gorm.DB, o of) error { return db.Model(o.bylaw).Association("Tenant").Append(o.two) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tenants(t)
			otherOnes := []string{"is there", "is not there"}
			if strings.HasPrefix(name, "a root, ") && name != "a root, Append" {
				otherOnes = otherOnes[:1] // these may create the row, and the struct does not show that it was read
			}
			for _, other := range otherOnes {
				stand.Must(t, db.Exec("DELETE FROM notes; DELETE FROM mottos; DELETE FROM stamps; DELETE FROM bylaws").Error)
				ids := []int64{0, 2}
				if other == "is not there" {
					ids = ids[:1]
				}
				for _, id := range ids {
					stand.Must(t, db.Create(&note{TenantID: id, No: 1, Text: "old"}).Error)
					stand.Must(t, db.Create(&motto{TenantID: id, Kind: 1, Text: "old"}).Error)
					stand.Must(t, db.Create(&stamp{TenantID: id, No: 1, Text: "old"}).Error)
					stand.Must(t, db.Create(&bylaw{TenantID: id, No: 1, Text: "old"}).Error)
				}
				before := texts(t, db)
				o := of{note: &note{}, motto: &motto{}, stamp: &stamp{}, bylaw: &bylaw{}, two: &tenant{}}
				for _, row := range []any{o.note, o.motto, o.stamp, o.bylaw} {
					stand.Must(t, db.First(row, "tenant_id = 0").Error)
				}
				stand.Must(t, db.First(o.two, 2).Error)
				o.note.Text, o.motto.Text, o.stamp.Text, o.bylaw.Text = "mine", "mine", "mine", "mine"
				if err := write(db, o); err == nil {
					t.Errorf("the other row %s: no error", other)
				}
				stand.Equal(t, "rows, the other "+other, texts(t, db), before)
				if o.note.TenantID+o.motto.TenantID+o.stamp.TenantID+o.bylaw.TenantID != 0 {
					t.Errorf("a struct is another row now: %+v %+v %+v %+v", o.note, o.motto, o.stamp, o.bylaw)
				}
			}
		})
	}
}

// texts are all rows but the tenants.
func texts(t *testing.T, db *gorm.DB) (all string) {
	for _, table := range []string{"notes", "mottos", "stamps", "bylaws"} {
		var text string
		stand.Must(t, db.Raw("SELECT COALESCE(string_agg(r::text, ' ' ORDER BY tenant_id), '') FROM "+table+" r").Scan(&text).Error)
		all += table + " " + text + "; "
	}
	return all
}

// A new struct gets the parts of its key that it lacks, also beside a row whose key has a zero there.
func TestKey_ofANewStructIsFilled(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(db *gorm.DB, two *tenant) error{
		"Save":     func(db *gorm.DB, two *tenant) error { return db.Save(&note{No: 2, Tenant: two}).Error },
		"slice":    func(db *gorm.DB, two *tenant) error { return db.Save([]*note{{No: 1, Tenant: two}}).Error },
		"Create":   func(db *gorm.DB, two *tenant) error { return db.Create(&note{No: 1, Tenant: two}).Error },
		"hook":     func(db *gorm.DB, _ *tenant) error { return db.WithContext(inTenant(t, 2)).Save(&note{No: 2}).Error },
		"children": func(db *gorm.DB, two *tenant) error { two.Notes = []*note{{No: 1}}; return db.Save(two).Error },
		"Append":   func(db *gorm.DB, two *tenant) error { return db.Model(two).Association("Notes").Append(&note{No: 1}) },
		"fence": func(db *gorm.DB, two *tenant) error {
			two.Stamps = []*stamp{{No: 1}}
			return db.Save(two).Error
		},
		"fence, slice": func(db *gorm.DB, two *tenant) error { return db.Save([]*stamp{{No: 1, Tenant: two}}).Error },
		"root":         func(db *gorm.DB, two *tenant) error { two.Bylaws = []*bylaw{{No: 1}}; return db.Save(two).Error },
		"root, Create": func(db *gorm.DB, two *tenant) error { return db.Create(&bylaw{No: 1, Tenant: two}).Error },
		"root, slice":  func(db *gorm.DB, two *tenant) error { return db.Save([]*bylaw{{No: 1, Tenant: two}}).Error },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tenants(t)
			stand.Must(t, db.Create(&note{No: 1, Text: "old"}).Error)
			stand.Must(t, db.Create(&stamp{No: 1, Text: "old"}).Error)
			stand.Must(t, db.Create(&bylaw{No: 1, Text: "old"}).Error)
			two := stand.Row[tenant](t, db, 2)
			stand.Must(t, write(db, &two))
			var n int64
			stand.Must(t, db.Raw("SELECT (SELECT count(*) FROM notes WHERE tenant_id = 2) + (SELECT count(*) FROM stamps WHERE tenant_id = 2) + (SELECT count(*) FROM bylaws WHERE tenant_id = 2)").Scan(&n).Error)
			stand.Equal(t, "new rows", n, 1)
		})
	}
}

// tenants opens a database with the tenants 0 and 2.
func tenants(t *testing.T) *gorm.DB {
	db := stand.Fenced(t, []any{&tenant{}, &note{}, &motto{}, &stamp{}, &bylaw{}})
	stand.Must(t, db.Exec("INSERT INTO tenants (id, version) VALUES (0, 1), (2, 1)").Error)
	return stand.With(db, stand.Issue(t, db, "stamp", 1)).Session(&gorm.Session{})
}

func inTenant(t *testing.T, id int64) context.Context {
	return context.WithValue(t.Context(), ofTenant{}, id)
}
