package rollbacks_test

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// house holds what it is linked to in every way, by value and by pointer.
type house struct {
	ID      int64
	Name    string
	BaseID  sql.NullInt64
	Base    ground
	RentID  sql.NullInt64
	Rent    *ground
	Roof    roof    `gorm:"foreignKey:HouseID"`
	Tower   *roof   `gorm:"foreignKey:TowerOf"`
	Rooms   []room  `gorm:"foreignKey:HouseID"`
	Sheds   []*room `gorm:"foreignKey:ShedOf"`
	Signs   []sign  `gorm:"many2many:house_signs"`
	Labels  []*sign `gorm:"many2many:house_labels"`
	Version int64   `gorm:"not null;default:1" gormlock:"version"`
}

type ground struct {
	ID      int64
	Name    string
	OwnerID *int64
	Owner   *sign
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type roof struct {
	ID      int64
	Name    string
	HouseID *int64
	TowerOf *int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type room struct {
	ID      int64
	Name    string
	HouseID *int64
	ShedOf  *int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type sign struct {
	ID      int64
	Name    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// linking is one way to link a child to a house.
type linking struct {
	field     string
	operation string
	child     func() any // a new one
	isStored  bool       // the child has a row already
	full      bool       // with FullSaveAssociations
}

func (l linking) String() string {
	return fmt.Sprintf("%s, %s, child stored: %v, full: %v", l.field, l.operation, l.isStored, l.full)
}

func (l linking) of(db *gorm.DB, h *house) *gorm.Association {
	return db.Session(&gorm.Session{FullSaveAssociations: l.full}).Model(h).Association(l.field)
}

func (l linking) do(db *gorm.DB, h *house, child any) error {
	switch l.operation {
	case "Append":
		return l.of(db, h).Append(child)
	case "Append twice":
		return errors.Join(l.of(db, h).Append(child), l.of(db, h).Append(l.child()))
	case "Append, Clear":
		return errors.Join(l.of(db, h).Append(child), l.of(db, h).Clear())
	case "Replace":
		return l.of(db, h).Replace(child)
	}
	return l.of(db, h).Unscoped().Replace(child)
}

// byValue reports whether GORM copies the child.
func (l linking) byValue() bool {
	field, _ := reflect.TypeFor[house]().FieldByName(l.field)
	return field.Type.Kind() == reflect.Struct || field.Type.Kind() == reflect.Slice && field.Type.Elem().Kind() == reflect.Struct
}

func versionOf(row any) int64 {
	return reflect.Indirect(reflect.ValueOf(row)).FieldByName("Version").Int()
}

func saved(db *gorm.DB, row any) error { return db.Omit(clause.Associations).Save(row).Error }

// check links a child in a transaction that ends so, or in none. Only what GORM copies may be unread then.
func (l linking) check(t *testing.T, db *gorm.DB, within bool, end error) {
	t.Helper()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%v; in a transaction: %v, which ends with %v: %s", l, within, end, fmt.Sprintf(format, args...))
	}
	h, child, deeper := house{}, l.child(), sign{}
	stand.MustDo(t, db.Create(&h))
	stand.Must(t, db.Model(&h).Association(l.field).Append(l.child()))
	stand.MustDo(t, db.Create(&deeper))
	if base, is := child.(*ground); is && l.full {
		base.OwnerID, base.Owner = &deeper.ID, &deeper
	}
	if l.isStored {
		stand.MustDo(t, db.Create(child))
	}
	was, childWas, deeperWas := h.Version, versionOf(child), deeper.Version
	body := func(tx *gorm.DB) error {
		if err := l.do(tx, &h, child); err != nil {
			fail("%v", err)
		}
		h.Name = "mine"
		if err := saved(tx, &h); err != nil {
			fail("the owner: %v", err)
		}
		if err := saved(tx, &deeper); err != nil {
			fail("what a copy points to: %v", err)
		}
		if l.operation == "Append" && (!within || !l.byValue()) {
			if err := saved(tx, child); err != nil {
				fail("the child: %v", err)
			}
		}
		return end
	}
	if within {
		_ = db.Transaction(body)
	} else {
		_ = body(db)
	}
	switch {
	case end != nil && l.operation == "Append, Clear" && (l.field == "Base" || l.field == "Rent"):
		stand.MustBeUnread(t, saved(db, &h)) // GORM had emptied its foreign key before the statement
		return
	case end != nil:
		stand.Equal(t, l.String()+", the owner after a rollback", h.Version, was)
		stand.Equal(t, l.String()+", what a copy points to", deeper.Version, deeperWas)
		if v := versionOf(child); v > childWas {
			fail("after the rollback the child is at %d, and was at %d", v, childWas)
		}
	}
	h.Name = "again"
	if err := saved(db, &h); err != nil {
		fail("the owner, afterwards: %v", err)
	}
	stand.Equal(t, l.String()+", the owner", h.Version, stand.Row[house](t, db, h.ID).Version)
	stand.MustDo(t, db.Model(&house{}).Where("id = ?", h.ID).Update("name", "a rival's"))
	if err := saved(db, &h); !errors.Is(err, gormlock.ErrStale) {
		fail("the owner, after a rival: %v", err)
	}
	if l.isStored {
		table := db.Model(l.child()).Where("id = ?", reflect.ValueOf(child).Elem().FieldByName("ID").Int())
		stand.MustDo(t, table.Update("name", "a rival's"))
		if err := saved(db, child); !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing) {
			fail("the child, after a rival: %v", err)
		}
	}
}

// Of Association(...).Append, Replace and Clear in the caller's transaction, only what GORM copies is unread: neither the owner nor what is
// held by pointers. After a rollback nothing has a version that was never committed.
func TestAppend_leavesTheOwnerRead(t *testing.T) {
	t.Parallel()
	ofGround, ofRoof := func() any { return &ground{Name: "new"} }, func() any { return &roof{Name: "new"} }
	ofRoom, ofSign := func() any { return &room{Name: "new"} }, func() any { return &sign{Name: "new"} }
	children := map[string]func() any{
		"Base": ofGround, "Rent": ofGround, "Roof": ofRoof, "Tower": ofRoof,
		"Rooms": ofRoom, "Sheds": ofRoom, "Signs": ofSign, "Labels": ofSign,
	}
	stand.OnBoth(t, []any{&sign{}, &ground{}, &house{}, &roof{}, &room{}}, func(t *testing.T, db *gorm.DB) {
		for field, child := range children {
			for _, operation := range []string{"Append", "Append twice", "Append, Clear", "Replace", "Unscoped Replace"} {
				for way := range 4 {
					if operation == "Append twice" && way&2 > 0 && (field == "Rooms" || field == "Signs") {
						continue // the second Append saves what the first one has copied
					}
					l := linking{field, operation, child, way&1 > 0, way&2 > 0}
					l.check(t, db, false, nil)
					l.check(t, db, true, nil)
					l.check(t, db, true, errUndo)
				}
			}
		}
	})
}
