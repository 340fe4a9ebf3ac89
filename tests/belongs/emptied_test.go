package belongs_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// keeper has associations of each kind, by pointer and by value.
type keeper struct {
	ID      int64
	Name    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
	UpID    *int64
	Up      *kept `gorm:"foreignKey:UpID"`
	AtID    *int64
	At      kept  `gorm:"foreignKey:AtID"`
	One     *kept `gorm:"foreignKey:KeeperID"`
	Own     keptByValue
	Pic     *keptPicture `gorm:"polymorphic:Owner"`
	Many    []keptOfMany
	Lent    []*keptOfMany `gorm:"many2many:keeper_lent"`
}

type kept struct {
	ID       int64
	Name     string
	KeeperID *int64
	Version  int64 `gorm:"not null;default:1" gormlock:"version"`
}

type keptByValue struct {
	ID       int64
	Name     string
	KeeperID *int64
	Version  int64 `gorm:"not null;default:1" gormlock:"version"`
}

type keptPicture struct {
	ID        int64
	Name      string
	OwnerID   *int64
	OwnerType *string
	Version   int64 `gorm:"not null;default:1" gormlock:"version"`
}

type keptOfMany struct {
	ID       int64
	Name     string
	KeeperID *int64
	Version  int64 `gorm:"not null;default:1" gormlock:"version"`
}

// keeping is an association of a keeper.
type keeping struct {
	name  string
	held  func(*keeper) any  // what the struct holds
	row   func(*gorm.DB) any // the same, read anew
	other func() any         // another one
	state string             // SELECT of whether it is linked
}

// asGORM reports whether no statement tells gormlock what GORM has emptied, so that a later write is as without it: what GORM leaves of an only child
// it may store as a new one, and what is held by value looks after a rollback as if it had never been there.
func (k *keeping) asGORM(ending string, committed bool) bool {
	return k.name == "One" || k.name == "Own" || k.name == "Pic" || k.name == "At" && (!committed || ending == "retry") || k.name == "Up" && committed
}

func keptRow[T any](id int64) func(*gorm.DB) any {
	return func(db *gorm.DB) any {
		var row T
		if err := db.First(&row, id).Error; err != nil {
			panic(err)
		}
		return &row
	}
}

var keepings = []keeping{
	{"Up", func(k *keeper) any { return k.Up }, keptRow[kept](1), func() any { return &kept{Name: "new"} }, "SELECT up_id IS NOT DISTINCT FROM 1 FROM keepers"},
	{"At", func(k *keeper) any { return &k.At }, keptRow[kept](2), func() any { return &kept{Name: "new"} }, "SELECT at_id IS NOT DISTINCT FROM 2 FROM keepers"},
	{"One", func(k *keeper) any { return k.One }, keptRow[kept](3), func() any { return &kept{Name: "new"} }, "SELECT keeper_id IS NOT DISTINCT FROM 1 FROM kepts WHERE id = 3"},
	{"Own", func(k *keeper) any { return &k.Own }, keptRow[keptByValue](1), func() any { return &keptByValue{Name: "new"} }, "SELECT keeper_id IS NOT DISTINCT FROM 1 FROM kept_by_values WHERE id = 1"},
	{"Pic", func(k *keeper) any { return k.Pic }, keptRow[keptPicture](1), func() any { return &keptPicture{Name: "new"} }, "SELECT owner_id IS NOT DISTINCT FROM 1 FROM kept_pictures WHERE id = 1"},
	{
		"Many", func(k *keeper) any { return append([]keptOfMany(nil), k.Many...) }, keptRow[keptOfMany](1), func() any { return &keptOfMany{Name: "new"} },
		"SELECT keeper_id IS NOT DISTINCT FROM 1 FROM kept_of_manies WHERE id = 1",
	},
	{"Lent", func(k *keeper) any { return slices.Clone(k.Lent) }, keptRow[keptOfMany](2), func() any { return &keptOfMany{Name: "new"} }, "SELECT count(*) > 0 FROM keeper_lent WHERE kept_of_many_id = 2"},
}

var errKeep = errors.New("no")

// endings are how what an association operation has done ends. Committed says that it stays.
var endings = []struct {
	name      string
	committed bool
	run       func(db *gorm.DB, do func(*gorm.DB) error) error
}{
	{"alone", true, func(db *gorm.DB, do func(*gorm.DB) error) error { return do(db) }},
	{"commit", true, func(db *gorm.DB, do func(*gorm.DB) error) error { return db.Transaction(do) }},
	{"rollback", false, func(db *gorm.DB, do func(*gorm.DB) error) error {
		return undoneBy(db.Transaction(func(tx *gorm.DB) error { return errors.Join(do(tx), errKeep) }))
	}},
	{"Rollback", false, func(db *gorm.DB, do func(*gorm.DB) error) error {
		tx := db.Begin()
		defer tx.Rollback()
		return do(tx)
	}},
	{"savepoint", false, func(db *gorm.DB, do func(*gorm.DB) error) error {
		return db.Transaction(func(tx *gorm.DB) error {
			return undoneBy(tx.Transaction(func(tx *gorm.DB) error { return errors.Join(do(tx), errKeep) }))
		})
	}},
	{"failed", false, func(db *gorm.DB, do func(*gorm.DB) error) error {
		_ = do(db.Set("keeper:fail", true))
		return nil
	}},
	{"failed in a transaction", false, func(db *gorm.DB, do func(*gorm.DB) error) error {
		_ = db.Transaction(func(tx *gorm.DB) error { return do(tx.Set("keeper:fail", true)) })
		return nil
	}},
	{"retry", true, func(db *gorm.DB, do func(*gorm.DB) error) error {
		attempts := 0
		return gormlock.Transaction(db, func(tx *gorm.DB) error {
			if err := do(tx); err != nil {
				return err
			}
			if attempts++; attempts == 1 {
				return gormlock.ErrStale
			}
			return nil
		}, gormlock.Attempts(2))
	}},
}

func undoneBy(err error) error {
	if errors.Is(err, errKeep) && strings.Count(err.Error(), "\n") == 0 {
		return nil
	}
	return err
}

var nexts = map[string]func(db *gorm.DB, k *keeper) error{
	"Save": func(db *gorm.DB, k *keeper) error { return db.Save(k).Error },
	"Omit Save": func(db *gorm.DB, k *keeper) error {
		return db.Omit("Up", "At", "One", "Own", "Pic", "Many", "Lent").Save(k).Error
	},
	"Save of a slice":  func(db *gorm.DB, k *keeper) error { return db.Save([]*keeper{k}).Error },
	"Select * Updates": func(db *gorm.DB, k *keeper) error { return db.Select("*").Updates(k).Error },
	"FullSave": func(db *gorm.DB, k *keeper) error {
		return db.Session(&gorm.Session{FullSaveAssociations: true}).Save(k).Error
	},
	"Update":        func(db *gorm.DB, k *keeper) error { return db.Model(k).Update("name", k.Name).Error },
	"First, Save":   func(db *gorm.DB, k *keeper) error { return errors.Join(db.First(k, 1).Error, db.Save(k).Error) },
	"Preload, Save": func(db *gorm.DB, k *keeper) error { return errors.Join(readKeeper(db, k, true), db.Save(k).Error) },
	"LockRow, Save": func(db *gorm.DB, k *keeper) error {
		return db.Transaction(func(tx *gorm.DB) error { return errors.Join(gormlock.LockRow(tx, k), tx.Save(k).Error) })
	},
}

func readKeeper(db *gorm.DB, k *keeper, loaded bool) error {
	if loaded {
		db = db.Preload("Up").Preload("At").Preload("One").Preload("Own").Preload("Pic").Preload("Many").Preload("Lent")
	}
	return db.First(k, 1).Error
}

// TestEmptied: whatever Association(…).Delete, Clear and Replace leave in the struct, and however they end, no later write of it
// stores an empty row, or links and unlinks what the operation did not, where gormlock can know.
func TestEmptied(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
	models := []any{&kept{}, &keptByValue{}, &keptPicture{}, &keptOfMany{}, &keeper{}}
	db.DisableForeignKeyConstraintWhenMigrating = true
	stand.Must(t, db.AutoMigrate(models...))
	raw := pgtest.Open(t, pgtest.Schema())
	for _, table := range []string{"kepts", "kept_by_values", "kept_pictures", "kept_of_manies"} {
		stand.Must(t, raw.Exec("ALTER SEQUENCE "+table+"_id_seq RESTART 10").Error)
	}
	for _, failing := range []error{
		db.Callback().Update().Before("gorm:update").Register("keeper:fail", failKeeper),
		db.Callback().Delete().Before("gorm:delete").Register("keeper:fail", failKeeper),
	} {
		stand.Must(t, failing)
	}
	for _, of := range keepings {
		for _, op := range []string{"Delete", "Clear", "Replace"} {
			for _, loaded := range []bool{true, false} {
				for _, own := range []bool{true, false} {
					for _, ending := range endings {
						for next, write := range nexts {
							some := next == "Save" || next == "Omit Save" || next == "First, Save"
							if own && (op != "Delete" || !loaded) || !some && of.name != "Up" && of.name != "One" {
								continue
							}
							name := fmt.Sprintf("%s of %s, loaded %v, own %v, %s, %s", op, of.name, loaded, own, ending.name, next)
							settleKeeper(t, raw)
							var k keeper
							stand.Must(t, readKeeper(db, &k, loaded))
							given := of.row(db)
							err := ending.run(db, func(tx *gorm.DB) error {
								switch a := tx.Model(&k).Association(of.name); {
								case op == "Clear":
									return a.Clear()
								case op == "Replace":
									return a.Replace(of.other())
								case own:
									return a.Delete(of.held(&k))
								default:
									return a.Delete(given)
								}
							})
							linked := keeperLinked(t, raw, of.state)
							lists := of.name == "Many" || of.name == "Lent" // the second attempt gives an empty list
							if should := !ending.committed; err == nil && linked != should && (!own || !lists || ending.name != "retry") {
								t.Errorf("%s: without an error, linked is %v", name, linked)
							}
							before := keeperRows(t, raw)
							for range 2 { // a refused one is tried again
								k.Name = "later"
								err = write(db, &k)
								if op == "Replace" && !ending.committed {
									break // what it has put into the struct stays there, and is saved
								}
								if of.asGORM(ending.name, ending.committed) {
									break
								}
								if now := keeperLinked(t, raw, of.state); now != linked {
									t.Errorf("%s: the write has made linked %v: %v", name, now, err)
								}
								if now := keeperRows(t, raw); now != before {
									t.Errorf("%s: the write has stored\n%s\nwhere there was\n%s\n%v", name, now, before, err)
								}
							}
							if strings.Contains(next, ", Save") && err != nil && !of.asGORM(ending.name, ending.committed) {
								t.Errorf("%s: %v", name, err)
							}
						}
					}
				}
			}
		}
	}
}

func failKeeper(db *gorm.DB) {
	if _, is := db.Get("keeper:fail"); is {
		_ = db.AddError(errKeep)
	}
}

// settleKeeper stores one keeper with all that it has.
func settleKeeper(t *testing.T, raw *gorm.DB) {
	t.Helper()
	stand.Must(t, raw.Exec(`DELETE FROM keepers; DELETE FROM kepts; DELETE FROM kept_by_values; DELETE FROM kept_pictures; DELETE FROM kept_of_manies;
		DELETE FROM keeper_lent;
		INSERT INTO kepts (id, name, keeper_id) VALUES (1, 'up', NULL), (2, 'at', NULL), (3, 'one', 1);
		INSERT INTO keepers (id, name, up_id, at_id) VALUES (1, 'k', 1, 2);
		INSERT INTO kept_by_values (id, name, keeper_id) VALUES (1, 'own', 1);
		INSERT INTO kept_pictures (id, name, owner_id, owner_type) VALUES (1, 'pic', 1, 'keepers');
		INSERT INTO kept_of_manies (id, name, keeper_id) VALUES (1, 'many', 1), (2, 'lent', NULL);
		INSERT INTO keeper_lent (keeper_id, kept_of_many_id) VALUES (1, 2)`).Error)
}

func keeperLinked(t *testing.T, raw *gorm.DB, asks string) (is bool) {
	t.Helper()
	stand.Must(t, raw.Raw(asks).Scan(&is).Error)
	return is
}

// keeperRows are all rows that belong to a keeper, or that it belongs to.
func keeperRows(t *testing.T, raw *gorm.DB) string {
	t.Helper()
	var all []string
	stand.Must(t, raw.Raw(`SELECT format('kept %s %s %s', id, name, keeper_id) FROM kepts
		UNION ALL SELECT format('own %s %s %s', id, name, keeper_id) FROM kept_by_values
		UNION ALL SELECT format('pic %s %s %s', id, name, owner_id) FROM kept_pictures
		UNION ALL SELECT format('many %s %s %s', id, name, keeper_id) FROM kept_of_manies
		UNION ALL SELECT format('lent %s %s', keeper_id, kept_of_many_id) FROM keeper_lent
		UNION ALL SELECT format('keeper %s %s', up_id, at_id) FROM keepers ORDER BY 1`).Scan(&all).Error)
	return strings.Join(all, "\n")
}

// TestEmptied_blankOnPurpose: after a Delete that was committed, a blank struct that the program makes is stored, and a has-one of one in any case.
func TestEmptied_blankOnPurpose(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
	db.DisableForeignKeyConstraintWhenMigrating = true
	stand.Must(t, db.AutoMigrate(&kept{}, &keptByValue{}, &keptPicture{}, &keptOfMany{}, &keeper{}))
	stand.Must(t, db.Create(&keeper{Up: &kept{}, One: &kept{}}).Error)
	var k keeper
	stand.Must(t, db.Preload("Up").Preload("One").First(&k, 1).Error)
	stand.Must(t, db.Model(&k).Association("Up").Delete(k.Up))
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error { return tx.Model(&k).Association("One").Delete(k.One) }))

	var again keeper
	stand.Must(t, db.First(&again, 1).Error)
	again.Up, again.One = &kept{}, &kept{}
	stand.Must(t, db.Save(&again).Error)
	stand.Must(t, db.Model(&again).Association("One").Replace(&kept{}))
	var stored keeper
	stand.Must(t, db.Preload("Up").Preload("One").First(&stored, 1).Error)
	if stored.Up == nil || stored.One == nil || stored.Up.ID == 0 || *stored.UpID != again.Up.ID || stored.One.ID != again.One.ID {
		t.Errorf("stored %+v %+v, want those of %+v %+v", stored.Up, stored.One, again.Up, again.One)
	}
}
