package belongs_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	parcel struct {
		ID        int64
		Title     string `gorm:"unique"`
		UpdatedAt int64
		Pieces    []piece `gorm:"foreignKey:ParcelID"`
		Version   int64   `gorm:"not null;default:1" gormlock:"version"`
	}
	piece struct {
		ID       int64
		ParcelID *int64
		Parcel   *parcel
		Qty      int
		Version  int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	MemberOf struct {
		SquadID *int64
		Note    string
	}
	squad struct {
		ID      int64
		Members []*squadMember `gorm:"foreignKey:SquadID"`
		Version int64          `gorm:"not null;default:1" gormlock:"version"`
	}
	squadMember struct {
		ID int64
		*MemberOf
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	hookedParcel struct {
		ID        int64
		UpdatedAt int64
		Pieces    []hookedPiece `gorm:"foreignKey:ParcelID"`
		Version   int64         `gorm:"not null;default:1" gormlock:"version"`

		hook func(tx *gorm.DB) error
	}
	hookedPiece struct {
		ID, ParcelID int64
		Version      int64 `gorm:"not null;default:1" gormlock:"version"`
	}
)

func (p *hookedParcel) BeforeUpdate(tx *gorm.DB) error {
	if p.hook == nil {
		return nil
	}
	return p.hook(tx)
}

// A condition on the version of one row says nothing of those that an association takes away.
func TestAssociation_takesAwayWithACondition(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*gorm.Association, *parcel) error{
		"Replace":        func(a *gorm.Association, _ *parcel) error { return a.Replace(&piece{Qty: 9}) },
		"Clear":          func(a *gorm.Association, _ *parcel) error { return a.Clear() },
		"Delete":         func(a *gorm.Association, p *parcel) error { return a.Delete(&p.Pieces) },
		"Clear, deleted": func(a *gorm.Association, _ *parcel) error { return a.Unscoped().Clear() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stand.OnBoth(t, []any{&parcel{}, &piece{}}, func(t *testing.T, db *gorm.DB) {
				p := parcel{Title: "a", Pieces: []piece{{Qty: 1}, {Qty: 2}}}
				stand.Must(t, db.Create(&p).Error)
				stand.Must(t, db.Model(&piece{}).Where("qty = 2").Update("qty", 22).Error)
				stand.Must(t, db.Preload("Pieces").First(&p, p.ID).Error)
				err := do(db.Clauses(gormlock.ExpectVersion(p.Version)).Model(&p).Association("Pieces"), &p)
				if err == nil || !strings.Contains(err.Error(), "Association") {
					t.Errorf("%v", err)
				}
				stand.Equal(t, "pieces", db.Find(&[]piece{}, "parcel_id = ?", p.ID).RowsAffected, 2)
				stand.Equal(t, "all pieces", db.Find(&[]piece{}).RowsAffected, 2)
			})
		})
	}
	t.Run("of what belongs to another", func(t *testing.T) {
		t.Parallel()
		db := stand.Versioned(t, []any{&parcel{}, &piece{}})
		p, q := parcel{Title: "a", Pieces: []piece{{Qty: 1}}}, parcel{Title: "b"}
		stand.Must(t, db.Create(&p).Error)
		stand.Must(t, db.Create(&q).Error)
		one := stand.Row[piece](t, db, p.Pieces[0].ID)
		if err := db.Clauses(gormlock.ExpectVersion(7)).Model(&one).Association("Parcel").Replace(&q); err == nil {
			t.Error("no error")
		}
		stand.Must(t, db.Clauses(gormlock.ExpectVersion(1)).Model(&one).Association("Parcel").Replace(&q))
		stand.Equal(t, "parcel", *stand.Row[piece](t, db, one.ID).ParcelID, q.ID)
	})
}

// If a parent is left out, because its row is there, its children would belong to none.
func TestCreate_ofChildrenOfNobody(t *testing.T) {
	t.Parallel()
	skip := clause.OnConflict{DoNothing: true}
	models := []any{&parcel{}, &piece{}}
	open := func(t *testing.T) *gorm.DB {
		t.Helper()
		db := stand.Open(t)
		db.DisableForeignKeyConstraintWhenMigrating = true
		stand.Must(t, db.AutoMigrate(models...))
		stand.Must(t, db.Create(&parcel{ID: 40, Title: "x"}).Error)
		return db
	}
	for name, wrong := range map[string]any{
		"one":              &parcel{Title: "x", Pieces: []piece{{Qty: 1}}},
		"one with a key":   &parcel{ID: 50, Title: "x", Pieces: []piece{{Qty: 1}}},
		"one of several":   &[]parcel{{Title: "y"}, {Title: "x", Pieces: []piece{{Qty: 1}}}},
		"one by a pointer": &[]*parcel{{Title: "x", Pieces: []piece{{Qty: 1}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			if err := db.Clauses(skip).Create(wrong).Error; err == nil || !strings.Contains(err.Error(), "Pieces would belong to no row") {
				t.Errorf("%v", err)
			}
			stand.Equal(t, "pieces", db.Find(&[]piece{}).RowsAffected, 0)
			stand.Equal(t, "parcels", db.Find(&[]parcel{}).RowsAffected, 1)
		})
	}
	t.Run("others", func(t *testing.T) {
		t.Parallel()
		db := open(t)
		stand.Must(t, db.Clauses(skip).Create(&parcel{Title: "x"}).Error)
		stand.Must(t, db.Clauses(skip).Omit("Pieces").Create(&parcel{Title: "x", Pieces: []piece{{Qty: 1}}}).Error)
		stand.Must(t, db.Clauses(skip).Create(&parcel{Title: "y", Pieces: []piece{{Qty: 1}}}).Error)
		stand.Must(t, db.Clauses(skip).Create(&parcel{ID: 40, Title: "x", Pieces: []piece{{Qty: 2}}}).Error)
		stand.Equal(t, "pieces", db.Find(&[]piece{}, "parcel_id = 40").RowsAffected, 1)
	})
}

// What a slice of new structs belongs to may be new too, with a key of the program's.
func TestSave_ofASliceOfWhatBelongsToNewOnes(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&parcel{}, &piece{}}, func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Save(&piece{Parcel: &parcel{ID: 700, Title: "a"}}).Error)
		stand.Must(t, db.Save(&[]piece{{Parcel: &parcel{ID: 701, Title: "b"}}, {ID: 90, Parcel: &parcel{Title: "c"}}}).Error)
		stand.Equal(t, "parcels", db.Find(&[]parcel{}).RowsAffected, 3)
		stand.Equal(t, "pieces", db.Find(&[]piece{}, "parcel_id IS NOT NULL").RowsAffected, 3)
		there := stand.Row[parcel](t, db, 701)
		stand.Must(t, db.Save(&[]piece{{Parcel: &there}, {ParcelID: &there.ID}}).Error)
		stand.Equal(t, "pieces of one", db.Find(&[]piece{}, "parcel_id = 701").RowsAffected, 3)
	})
}

// A hook that runs while an association is saved makes statements of its own, which are checked like others.
func TestSelect_inAHookOfAnAssociation(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&hookedParcel{}, &hookedPiece{}, &parcel{}, &piece{}})
	h, p := hookedParcel{}, parcel{Title: "a"}
	stand.Must(t, db.Create(&h).Error)
	stand.Must(t, db.Create(&p).Error)
	h.hook = func(tx *gorm.DB) error {
		p.Title = "new"
		return tx.Session(&gorm.Session{NewDB: true}).Select("title, version", "updated_at").Updates(&p).Error
	}
	err := db.Model(&h).Association("Pieces").Append(&hookedPiece{})
	if err == nil || !strings.Contains(err.Error(), "Select names") {
		t.Errorf("%v", err)
	}
}

// A rollback takes a foreign key back that was in an embedded struct of its own.
func TestRollback_ofAForeignKeyInANilPointer(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&squad{}, &squadMember{}}, func(t *testing.T, db *gorm.DB) {
		x, m := squad{}, squadMember{}
		stand.Must(t, db.Create(&x).Error)
		stand.Must(t, db.Create(&m).Error)
		for _, again := range []bool{false, true} {
			err := db.Transaction(func(tx *gorm.DB) error {
				x.Members = []*squadMember{&m}
				stand.Must(t, tx.Save(&x).Error)
				if again {
					m.Note = "mine"
				}
				return gorm.ErrInvalidData
			})
			stand.Equal(t, "error", err, gorm.ErrInvalidData)
			if m.MemberOf != nil && (m.SquadID != nil || !again) {
				t.Errorf("%+v", m.MemberOf)
			}
		}
		stand.Must(t, db.Save(&m).Error)
		now := stand.Row[squadMember](t, db, m.ID)
		if now.MemberOf == nil || now.SquadID != nil || now.Note != "mine" {
			t.Errorf("%+v", now.MemberOf)
		}
	})
}

type (
	pallet struct {
		ID      int64
		Name    string `gorm:"unique"`
		Version int64  `gorm:"not null;default:1" gormlock:"version"`
	}
	crate struct {
		ID       int64
		PalletID *int64
		Pallet   *pallet `gorm:"constraint:-"`
		Version  int64   `gorm:"not null;default:1" gormlock:"version"`
	}
)

// The unique index of a partitioned table may hold more than the key of the model.
func TestOwner_inAPartitionedTable(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&crate{}})
	stand.Must(t, db.Exec(`DROP TABLE IF EXISTS pallets;
		CREATE TABLE pallets (id bigserial, name text, version bigint NOT NULL DEFAULT 1, day int NOT NULL DEFAULT 1, PRIMARY KEY (id, day), UNIQUE (name, day)) PARTITION BY LIST (day);
		CREATE TABLE pallets_1 PARTITION OF pallets FOR VALUES IN (1)`).Error)
	p := pallet{ID: 1, Name: "a"}
	stand.Must(t, db.Create(&p).Error)
	stand.Must(t, db.Create(&crate{Pallet: &p}).Error)
	stand.Must(t, db.Create(&crate{Pallet: &pallet{ID: 2, Name: "b"}}).Error)
	if err := db.Create(&crate{Pallet: &pallet{ID: 3, Name: "a"}}).Error; err == nil || !strings.Contains(err.Error(), "nothing can refer to it") {
		t.Errorf("%v", err)
	}
	stand.Equal(t, "crates", db.Find(&[]crate{}).RowsAffected, 2)
}
