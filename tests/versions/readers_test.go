package versions_test

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// parcelOrder has more fields than its lines: GORM keeps its relation to them in their schema too.
type parcelOrder struct {
	ID, A, B, C, D int64
	Version        int64 `gorm:"not null;default:1" gormlock:"version"`
	Lines          []parcelLine
}

type parcelLine struct {
	ID            int64
	ParcelOrderID int64
	Version       int64 `gorm:"not null;default:1" gormlock:"version"`
}

// V1: a read of children, of whose parents something was written, is rolled back as any other.
func TestV1_ReadsOfChildren(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&parcelOrder{}, &parcelLine{}}, func(t *testing.T, db *gorm.DB) {
		stand.MustDo(t, db.Create(&parcelOrder{ID: 1, Lines: []parcelLine{{ID: 1}, {ID: 2}}}))
		var lines []parcelLine
		err := db.Transaction(func(tx *gorm.DB) error {
			stand.MustDo(t, tx.Model(&parcelOrder{}).Where("id = 1").Update("a", 7))
			stand.MustDo(t, tx.Model(&parcelLine{ID: 1, Version: 1}).Update("parcel_order_id", 1))
			stand.MustDo(t, tx.Order("id").Find(&lines))
			return errBoom
		})
		if !errors.Is(err, errBoom) {
			t.Fatal(err)
		}
		stand.Equal(t, "versions", [2]int64{lines[0].Version, lines[1].Version}, [2]int64{stand.Unread, stand.Unread})
	})
}

// crate begins with what it belongs to: both have one address.
type crate struct {
	Owner   crateOwner
	OwnerID int64
	ID      int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type crateOwner struct {
	ID      int64
	Name    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// crateLabel is a part of a crate, read by its model.
type crateLabel struct {
	ID      int64
	Name    string
	Version int64
}

// V1: no way to read or write rows is left out of what a rollback makes of them.
func TestV1_EveryReadOfRolledBackWrites(t *testing.T) {
	t.Parallel()
	bulk := func(t *testing.T, tx *gorm.DB) {
		stand.MustDo(t, tx.Model(&stand.Account{}).Where("true").Update("balance", 50))
	}
	for name, read := range map[string]func(t *testing.T, tx *gorm.DB) *stand.Account{
		"FindInBatches of pointers, an earlier batch": func(t *testing.T, tx *gorm.DB) (got *stand.Account) {
			bulk(t, tx)
			var batch []*stand.Account
			stand.MustDo(t, tx.FindInBatches(&batch, 1, func(*gorm.DB, int) error {
				if got == nil {
					got = batch[0]
				}
				return nil
			}))
			return got
		},
		"Find into a slice that is used again": func(t *testing.T, tx *gorm.DB) *stand.Account {
			bulk(t, tx)
			var rows []stand.Account
			stand.MustDo(t, tx.Find(&rows, 1))
			got := &rows[0]
			rows = nil
			stand.MustDo(t, tx.Find(&rows, 2))
			return got
		},
		"a bulk update of many that returns one": func(t *testing.T, tx *gorm.DB) *stand.Account {
			var returned, got stand.Account
			stand.MustDo(t, tx.Model(&returned).Clauses(clause.Returning{}).Where("true").Update("balance", 50))
			stand.MustDo(t, tx.Where("id <> ?", returned.ID).First(&got))
			return &got
		},
		"an upsert of another row than its key's": func(t *testing.T, tx *gorm.DB) *stand.Account {
			stand.MustDo(t, tx.Exec("create unique index on accounts (balance)"))
			stand.MustDo(t, tx.Clauses(clause.OnConflict{
				Columns: []clause.Column{{Name: "balance"}}, DoUpdates: clause.Assignments(map[string]any{"note": "upserted"}),
			}).Create(&stand.Account{ID: 9, Balance: 1}))
			var got stand.Account
			stand.MustDo(t, tx.First(&got, 1))
			stand.Equal(t, "version", got.Version, 2)
			return &got
		},
		"FirstOrCreate": func(t *testing.T, tx *gorm.DB) *stand.Account {
			bulk(t, tx)
			got := stand.Account{ID: 1}
			stand.MustDo(t, tx.FirstOrCreate(&got))
			return &got
		},
		"Assign and FirstOrCreate": func(t *testing.T, tx *gorm.DB) *stand.Account {
			bulk(t, tx)
			got := stand.Account{ID: 1}
			stand.MustDo(t, tx.Assign(stand.Account{Balance: 77}).FirstOrCreate(&got))
			return &got
		},
		"a create by a map": func(t *testing.T, tx *gorm.DB) *stand.Account {
			stand.MustDo(t, tx.Delete(&stand.Account{ID: 1, Version: 1}))
			stand.MustDo(t, tx.Model(&stand.Account{}).Create(map[string]any{"id": 1, "version": 5}))
			got := stand.Account{ID: 1}
			stand.MustDo(t, tx.First(&got))
			return &got
		},
		"Touch": func(t *testing.T, tx *gorm.DB) *stand.Account {
			stand.Must(t, gormlock.Touch(tx, &stand.Account{ID: 1, Version: 1}))
			got := stand.Account{ID: 1}
			stand.MustDo(t, tx.First(&got))
			return &got
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&stand.Account{}})
			stand.MustDo(t, db.Create(&[]stand.Account{{ID: 1, Balance: 1}, {ID: 2, Balance: 2}}))
			var got *stand.Account
			if err := db.Transaction(func(tx *gorm.DB) error { got = read(t, tx); return errBoom }); !errors.Is(err, errBoom) {
				t.Fatal(err)
			}
			for range 4 {
				stand.MustDo(t, db.Model(&stand.Account{}).Where("true").Update("note", "rival").Update("balance", gorm.Expr("balance + 1")))
				if err := db.Save(got).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
					t.Fatal(got, err)
				}
			}
		})
	}
}

// V1: what a row belongs to is read with it, even if both begin at one address.
func TestV1_JoinsOfRolledBackWrites(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&crateOwner{}, &crate{}})
	stand.MustDo(t, db.Create(&crate{ID: 1, Owner: crateOwner{ID: 1}}))
	var got crate
	_ = db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Model(&crateOwner{}).Where("id = 1").Update("name", "x"))
		stand.MustDo(t, tx.Joins("Owner").First(&got))
		return errBoom
	})
	stand.Equal(t, "versions", [2]int64{got.Version, got.Owner.Version}, [2]int64{stand.Unread, stand.Unread})
}

// V1: a deletion that returns rows of a model that is named beside them reads them.
func TestV1_RowsThatADeleteReturns(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&buried{}})
	stand.MustDo(t, db.Create(&buried{ID: 1}))
	var got []buried
	_ = db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Model(&buried{}).Clauses(clause.Returning{}).Where("id = 1").Delete(&got))
		return errBoom
	})
	if len(got) != 1 || got[0].Version != stand.Unread {
		t.Fatal(got)
	}
}

type buried struct {
	ID        int64
	Version   int64 `gorm:"not null;default:1" gormlock:"version"`
	DeletedAt gorm.DeletedAt
}

// V1: a form that was read carries a version as its model does, and an update by it compares that.
func TestV1_FormsOfRolledBackWrites(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&crateOwner{}, &stand.TimedTask{}, &stand.RailsTask{}})
	formsOfRolledBackWrites[crateOwner, crateLabel](t, db)
	formsOfRolledBackWrites[crateOwner, struct {
		ID      *int64
		Name    string
		Version sql.NullInt32
	}](t, db)
	formsOfRolledBackWrites[crateOwner, struct {
		Name    string
		Version *uint64
	}](t, db)
	formsOfRolledBackWrites[crateOwner, struct {
		Owner crateOwner `gorm:"embedded"`
	}](t, db)
	formsOfRolledBackWrites[stand.TimedTask, struct {
		State   string
		Version time.Time
	}](t, db)
	formsOfRolledBackWrites[stand.RailsTask, struct {
		State       string
		LockVersion uint16
	}](t, db)
}

func formsOfRolledBackWrites[T, F any](t *testing.T, db *gorm.DB) {
	t.Helper()
	column := "state"
	if _, owner := any(new(T)).(*crateOwner); owner {
		column = "name"
	}
	stand.MustDo(t, db.Exec("truncate crate_owners, timed_tasks, rails_tasks"))
	stand.MustDo(t, db.Model(new(T)).Create(map[string]any{"id": 1}))
	var form F
	_ = db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Model(new(T)).Where("id = 1").Update(column, "x"))
		stand.MustDo(t, tx.Model(new(T)).Take(&form))
		return errBoom
	})
	stand.MustDo(t, db.Model(new(T)).Where("id = 1").Update(column, "rival"))
	stand.MustBeUnread(t, db.Model(new(T)).Where("id = 1").Updates(form).Error)
}

// TestV1_FormsWithoutAVersion: a form that was read without its version holds none after the rollback either.
func TestV1_FormsWithoutAVersion(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	stand.MustDo(t, db.Create(&stand.Account{ID: 1}))
	var form struct{ ID, Balance, Version int64 }
	if err := db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Model(&stand.Account{}).Where("id = 1").Update("balance", 8))
		stand.MustDo(t, tx.Model(&stand.Account{}).Where("id = 1").Select("id", "balance").Find(&form))
		return errBoom
	}); !errors.Is(err, errBoom) {
		t.Fatal(err)
	}
	stand.Equal(t, "version", form.Version, 0)
	stand.MustDo(t, db.Model(&stand.Account{}).Where("id = 1").Updates(form))
}
