package invariants

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
)

// upserters insert or update.
var upserters = []form{
	upsert("UpdateAll", "clause.OnConflict{UpdateAll: true}", true, func(*cell) clause.OnConflict { return clause.OnConflict{UpdateAll: true} }),
	upsert("DoUpdates a", `clause.OnConflict{Columns: key, DoUpdates: clause.AssignmentColumns([]string{"a"})}`, false, func(c *cell) clause.OnConflict {
		return clause.OnConflict{Columns: c.onKey(), DoUpdates: clause.AssignmentColumns([]string{"a"})}
	}),
	upsert("DoUpdates a and version", `clause.OnConflict{Columns: key, DoUpdates: clause.AssignmentColumns([]string{"a", "version"})}`, false, func(c *cell) clause.OnConflict {
		return clause.OnConflict{Columns: c.onKey(), DoUpdates: clause.AssignmentColumns([]string{"a", c.shape.version.DBName})}
	}),
	upsert("DoUpdates a literal", `clause.OnConflict{Columns: key, DoUpdates: clause.Assignments(map[string]any{"a": 90})}`, false, func(c *cell) clause.OnConflict {
		return clause.OnConflict{Columns: c.onKey(), DoUpdates: clause.Assignments(map[string]any{"a": written})}
	}),
	upsert("DoUpdates an expression", `clause.OnConflict{Columns: key, DoUpdates: clause.Assignments(map[string]any{"a": gorm.Expr("excluded.a")})}`, false, func(c *cell) clause.OnConflict {
		return clause.OnConflict{Columns: c.onKey(), DoUpdates: clause.Assignments(map[string]any{"a": gorm.Expr("excluded.a")})}
	}),
	onUnique("on a unique column, UpdateAll", `clause.OnConflict{Columns: []clause.Column{{Name: "u"}}, UpdateAll: true}`, true, func(*cell) clause.OnConflict {
		return clause.OnConflict{Columns: onU, UpdateAll: true}
	}),
	onUnique("on a unique column, DoUpdates a", `clause.OnConflict{Columns: []clause.Column{{Name: "u"}}, DoUpdates: clause.AssignmentColumns([]string{"a"})}`, false, func(*cell) clause.OnConflict {
		return clause.OnConflict{Columns: onU, DoUpdates: clause.AssignmentColumns([]string{"a"})}
	}),
	{name: "upsert, UpdateAll, Returning a", kind: upserts, code: `x.A = 90; tx.Clauses(clause.OnConflict{UpdateAll: true}, clause.Returning{Columns: []clause.Column{{Name: "a"}}}).Create(&x)`,
		prepare: assigned(func(c *cell, tx *gorm.DB) error {
			return tx.Clauses(clause.OnConflict{UpdateAll: true}, returning("a")).Create(c.h.ptr).Error
		})},
	{name: "upsert, DoUpdates a, Returning all", kind: upserts, code: `x.A = 90; tx.Clauses(clause.OnConflict{Columns: key, DoUpdates: …a…}, clause.Returning{}).Create(&x)`,
		prepare: assigned(func(c *cell, tx *gorm.DB) error {
			return tx.Clauses(clause.OnConflict{Columns: c.onKey(), DoUpdates: clause.AssignmentColumns([]string{"a"})}, clause.Returning{}).Create(c.h.ptr).Error
		})},
	{name: "upsert, DoUpdates a, Where", kind: upserts, plural: true, code: `x.A = 90; tx.Clauses(clause.OnConflict{Columns: key, DoUpdates: …a…, Where: clause.Where{… b < 50 …}}).Create(&x)`,
		prepare: assigned(func(c *cell, tx *gorm.DB) error {
			where := clause.Where{Exprs: []clause.Expression{clause.Lt{Column: clause.Column{Table: c.shape.table, Name: "b"}, Value: 50}}}
			return tx.Clauses(clause.OnConflict{Columns: c.onKey(), DoUpdates: clause.AssignmentColumns([]string{"a"}), Where: where}).Create(c.h.ptr).Error
		})},
	{name: "upsert, DO NOTHING", kind: free, does: other, code: `x.A = 90; tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&x)`,
		prepare: assigned(func(c *cell, tx *gorm.DB) error {
			return tx.Clauses(clause.OnConflict{DoNothing: true}).Create(c.h.ptr).Error
		})},
	{name: "upsert, DO NOTHING, and a new one", kind: free, does: other, code: `s := []T{x, fresh}; tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&s)`,
		prepare: func(c *cell) func(*gorm.DB) error {
			set(c)
			s := c.slice(c.newcomer())
			return func(tx *gorm.DB) error { return tx.Clauses(clause.OnConflict{DoNothing: true}).Create(s).Error }
		}},
	{name: "upsert of two", kind: upserts, two: true, code: "x.A = 90; s := []T{x, y}; tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&s)",
		prepare: func(c *cell) func(*gorm.DB) error {
			set(c)
			s := c.slice(c.second)
			return func(tx *gorm.DB) error { return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(s).Error }
		}},
	{name: "upsert and a new one", kind: upserts, code: "x.A = 90; s := []T{x, fresh}; tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&s)",
		prepare: func(c *cell) func(*gorm.DB) error {
			set(c)
			s := c.slice(c.newcomer())
			return func(tx *gorm.DB) error { return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(s).Error }
		}},
	{name: "Save of this and a new one", kind: checked, code: "x.A = 90; s := []T{x, fresh}; tx.Save(&s)",
		prepare: func(c *cell) func(*gorm.DB) error {
			set(c)
			s := c.slice(c.newcomer())
			return func(tx *gorm.DB) error { return tx.Save(s).Error }
		}},
	{name: "upsert without a key, UpdateAll", kind: blind, code: `k := T{U: x.U, A: 90}; tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "u"}}, UpdateAll: true}).Create(&k)`,
		prepare: func(c *cell) func(*gorm.DB) error {
			h := c.keyless()
			return func(tx *gorm.DB) error {
				return tx.Clauses(clause.OnConflict{Columns: onU, UpdateAll: true}).Create(h.ptr).Error
			}
		}, only: autoKey},
	{name: "upsert without a key, DoUpdates a", kind: blind, code: `k := T{U: x.U, A: 90}; tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "u"}}, DoUpdates: …a…}).Create(&k)`,
		prepare: func(c *cell) func(*gorm.DB) error {
			h := c.keyless()
			return func(tx *gorm.DB) error {
				return tx.Clauses(clause.OnConflict{Columns: onU, DoUpdates: clause.AssignmentColumns([]string{"a"})}).Create(h.ptr).Error
			}
		}, only: autoKey},
	{name: "G.Create, upsert", kind: upserts, code: "x.A = 90; gorm.G[T](tx, clause.OnConflict{UpdateAll: true}).Create(ctx, &x)",
		prepare: assigned(func(c *cell, tx *gorm.DB) error {
			return c.shape.generic.Create(tx, c.h.ptr, clause.OnConflict{UpdateAll: true})
		})},
	{name: "upsert in batches", kind: upserts, two: true, code: "x.A = 90; s := []T{y, x}; tx.Clauses(clause.OnConflict{UpdateAll: true}).CreateInBatches(&s, 1)",
		prepare: func(c *cell) func(*gorm.DB) error {
			set(c)
			s := c.pointers(c.second)
			reverse(s)
			return func(tx *gorm.DB) error {
				return tx.Clauses(clause.OnConflict{UpdateAll: true}).CreateInBatches(s, 1).Error
			}
		}},
	{name: "upsert, PreserveVersion", kind: upserts, code: "x.A = 90; tx.Clauses(gormlock.PreserveVersion(), clause.OnConflict{UpdateAll: true}).Create(&x)",
		prepare: assigned(func(c *cell, tx *gorm.DB) error {
			return tx.Clauses(gormlock.PreserveVersion(), clause.OnConflict{UpdateAll: true}).Create(c.h.ptr).Error
		}), only: movable},
	{name: "FirstOrCreate, Assign", kind: blind, several: true, code: `var f T; tx.Where("u = ?", x.U).Assign(map[string]any{"a": 90}).FirstOrCreate(&f)`,
		prepare: func(c *cell) func(*gorm.DB) error {
			h := c.stranger()
			return func(tx *gorm.DB) error {
				return tx.Where("u = ?", c.u()).Assign(map[string]any{"a": written, "u": c.u()}).FirstOrCreate(h.ptr).Error
			}
		}, only: autoKey},
	{name: "FirstOrInit, then Save", kind: free, several: true, code: `var f T; tx.Where("u = ?", x.U).Assign(map[string]any{"a": 90}).FirstOrInit(&f); tx.Save(&f)`,
		prepare: func(c *cell) func(*gorm.DB) error {
			h := c.stranger()
			return func(tx *gorm.DB) error {
				if err := tx.Where("u = ?", c.u()).Assign(map[string]any{"a": written, "u": c.u()}).FirstOrInit(h.ptr).Error; err != nil {
					return err
				}
				h.assign("A", written)
				return tx.Save(h.ptr).Error
			}
		}, only: autoKey},
	{name: "Create of a new one", kind: free, does: other, code: `n := T{U: "new", A: 90}; tx.Create(&n)`,
		prepare: func(c *cell) func(*gorm.DB) error {
			h := c.newcomer()
			return func(tx *gorm.DB) error { return tx.Create(h.ptr).Error }
		}},
	{name: "Create, then Save", kind: free, several: true, does: other, code: `n := T{U: "new", A: 90}; tx.Create(&n); n.B = 7; tx.Save(&n)`,
		prepare: func(c *cell) func(*gorm.DB) error {
			h := c.newcomer()
			return func(tx *gorm.DB) error {
				if err := tx.Create(h.ptr).Error; err != nil {
					return err
				}
				h.assign("B", int64(7))
				return tx.Save(h.ptr).Error
			}
		}},
}

// upsert is Create with a conflict clause.
func upsert(name, code string, keeps bool, conflict func(c *cell) clause.OnConflict) form {
	return form{name: "upsert, " + name, kind: upserts, keeps: keeps, code: "x.A = 90; tx.Clauses(" + code + ").Create(&x)",
		prepare: assigned(func(c *cell, tx *gorm.DB) error { return tx.Clauses(conflict(c)).Create(c.h.ptr).Error })}
}

// onUnique is one whose conflict is not that of the key.
func onUnique(name, code string, keeps bool, conflict func(c *cell) clause.OnConflict) form {
	f := upsert(name, code, keeps, conflict)
	f.unique = true
	return f
}

func autoKey(s *shape) bool {
	return s.schema.PrioritizedPrimaryField != nil && s.schema.PrioritizedPrimaryField.AutoIncrement
}

func reverse(slice any) {
	v := reflect.ValueOf(slice)
	swap := reflect.Swapper(slice)
	for i := range v.Len() / 2 {
		swap(i, v.Len()-1-i)
	}
}
