package transactions_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// order does something in its hooks.
type order struct {
	ID      int64
	Tenant  string
	State   string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`

	Before, After func(tx *gorm.DB) error `gorm:"-"`
}

func (o *order) BeforeSave(tx *gorm.DB) error   { return once(&o.Before, tx) }
func (o *order) BeforeDelete(tx *gorm.DB) error { return once(&o.Before, tx) }
func (o *order) AfterSave(tx *gorm.DB) error    { return once(&o.After, tx) }
func (o *order) AfterDelete(tx *gorm.DB) error  { return once(&o.After, tx) }

// once calls what a hook is to do, and takes it away.
func once(do *func(tx *gorm.DB) error, tx *gorm.DB) error {
	call := *do
	*do = nil
	if call == nil {
		return nil
	}
	return call(tx)
}

// counted is what the hooks of an order write. It has columns of the same names.
type counted struct {
	ID      int64
	Tenant  string
	State   string
	N       int
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// ofHooks are what a program writes in the function of a transaction: each adds one to counted 7, or makes or deletes a row.
var ofHooks = map[string]func(tx *gorm.DB) error{
	"bulk": func(tx *gorm.DB) error {
		return tx.Model(&counted{}).Where("id = 700").Update("n", gorm.Expr("n + 1")).Error
	},
	"struct": func(tx *gorm.DB) error {
		var read counted
		if err := tx.First(&read, 700).Error; err != nil {
			return err
		}
		read.N++
		return tx.Save(&read).Error
	},
	"raw": func(tx *gorm.DB) error { return tx.Exec("UPDATE counteds SET n = n + 1 WHERE id = 700").Error },
	"G": func(tx *gorm.DB) error {
		_, err := gorm.G[counted](tx).Where("id = 700").Update(tx.Statement.Context, "n", 1)
		return err
	},
	"another order": func(tx *gorm.DB) error {
		if err := tx.Model(&order{}).Where("id = 800").Update("state", "seen").Error; err != nil {
			return err
		}
		return tx.Exec("UPDATE counteds SET n = 1 WHERE id = 700 AND (SELECT state FROM orders WHERE id = 800) = 'seen'").Error
	},
	"create and delete": func(tx *gorm.DB) error {
		made := counted{N: 5}
		if err := tx.Create(&made).Error; err != nil {
			return err
		}
		var count int64
		if err := tx.Model(&counted{}).Where("n = 5").Count(&count).Error; err != nil || count != 1 {
			return fmt.Errorf("%d rows, %w", count, err)
		}
		if err := tx.Delete(&made).Error; err != nil {
			return err
		}
		return tx.Exec("UPDATE counteds SET n = 1 WHERE id = 700 AND NOT EXISTS (SELECT FROM counteds WHERE n = 5)").Error
	},
}

// begun are the ways to have a transaction of one's own inside of a hook, or of what else GORM calls.
var begun = map[string]func(tx *gorm.DB, fn func(tx *gorm.DB) error) error{
	"GORM's": func(tx *gorm.DB, fn func(tx *gorm.DB) error) error { return tx.Transaction(fn) },
	"Transaction": func(tx *gorm.DB, fn func(tx *gorm.DB) error) error {
		return gormlock.Transaction(tx, fn, gormlock.Locking(gormlock.Key("counted", 700)), gormlock.Within(time.Minute))
	},
	"Transaction of a new session": func(tx *gorm.DB, fn func(tx *gorm.DB) error) error {
		return gormlock.Transaction(tx.Session(&gorm.Session{NewDB: true}), fn)
	},
	"Once": func(tx *gorm.DB, fn func(tx *gorm.DB) error) error {
		_, err := gormlock.Once(tx, fmt.Sprint(time.Now().UnixNano()), func(tx *gorm.DB) (int, error) { return 1, fn(tx) })
		return err
	},
}

// In a hook a transaction has nothing of the statement that the hook belongs to.
func TestTransaction_inAHook(t *testing.T) {
	t.Parallel()
	for outer, write := range map[string]func(db *gorm.DB, o *order) error{
		"save": func(db *gorm.DB, o *order) error { o.State = "x"; return db.Save(o).Error },
		"where": func(db *gorm.DB, o *order) error {
			return db.Where("tenant = 'eu'").Model(o).Update("state", "x").Error
		},
		"select": func(db *gorm.DB, o *order) error { o.State = "x"; return db.Select("state").Updates(o).Error },
		"omit":   func(db *gorm.DB, o *order) error { o.State = "x"; return db.Omit("tenant").Save(o).Error },
		"expect": func(db *gorm.DB, o *order) error {
			return db.Clauses(gormlock.ExpectVersion(1)).Model(o).Update("state", "x").Error
		},
		"create": func(db *gorm.DB, o *order) error { o.ID, o.Version = 0, 0; return db.Create(o).Error },
		"delete": func(db *gorm.DB, o *order) error { return db.Unscoped().Delete(o).Error },
	} {
		t.Run(outer, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&order{}, &counted{}})
			stand.Must(t, gormlock.MigrateOnce(db))
			for inner, fn := range ofHooks {
				for way, begin := range begun {
					for _, after := range []bool{false, true} {
						stand.MustDo(t, db.Exec("TRUNCATE orders, counteds"))
						stand.MustDo(t, db.Create(&counted{ID: 700, Tenant: "us"}))
						stand.MustDo(t, db.Create(&order{ID: 800, Tenant: "us"}))
						o := stand.Made(t, db, order{Tenant: "eu"})
						hook := func(tx *gorm.DB) error { return begin(tx, fn) }
						if o.Before = hook; after {
							o.Before, o.After = nil, hook
						}
						if err := write(db, &o); err != nil {
							t.Errorf("%s by %s, after %t: %v", inner, way, after, err)
						} else if row := stand.Row[counted](t, db, 700); row.N != 1 || row.Tenant != "us" {
							t.Errorf("%s by %s, after %t: stored %+v", inner, way, after, row)
						}
					}
				}
			}
		})
	}
}

// Nor in the function of FindInBatches, nor on a session that has left its chain behind.
func TestTransaction_ofNewStatements(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&counted{}})
	stand.Must(t, gormlock.MigrateOnce(db))
	for way, begin := range begun {
		stand.MustDo(t, db.Exec("TRUNCATE counteds"))
		stand.MustDo(t, db.Create(&[]counted{{N: 1}, {N: 2}, {N: 3}}))
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
			var batch []counted
			found := tx.Where("n < 3").FindInBatches(&batch, 1, func(tx *gorm.DB, _ int) error {
				return begin(tx, func(tx *gorm.DB) error {
					batch[0].N += 10
					return errors.Join(tx.Save(&batch[0]).Error, tx.Model(&counted{}).Where("n = 3").Update("state", "seen").Error)
				})
			})
			if found.Error != nil {
				t.Errorf("%s: %v", way, found.Error)
			}
			var count int64
			err := begin(tx.Where("n > 11").Session(&gorm.Session{NewDB: true}), func(tx *gorm.DB) error { return tx.Model(&counted{}).Count(&count).Error })
			if err != nil || count != 3 {
				t.Errorf("%s: %d rows, %v", way, count, err)
			}
			return nil
		}))
		var changed int64
		stand.MustDo(t, db.Model(&counted{}).Where("n > 10 OR state = 'seen' AND version = 3").Count(&changed))
		if changed != 3 {
			t.Errorf("%s: %d rows were changed", way, changed)
		}
	}
}

// What a hook sets in its own statement from inside of a transaction is written.
func TestTransaction_inAHookThatSetsAColumn(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&order{}}).WithContext(t.Context())
	o := stand.Made(t, db, order{State: "old"})
	o.Before = func(tx *gorm.DB) error {
		return gormlock.Transaction(tx, func(tx *gorm.DB) error { tx.Statement.SetColumn("State", "set"); return nil })
	}
	stand.MustDo(t, db.Model(&o).Updates(order{State: "new"}))
	stand.Equal(t, "state", stand.Row[order](t, db, o.ID).State, "set")
}
