package invariants

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

// readers read into the struct what the same transaction wrote past it: what they read is never true if it is rolled back.
var readers = []form{
	reads("raw update, First", "tx.Clauses(key).First(&x)", func(c *cell, tx *gorm.DB) error {
		return tx.Clauses(c.where()).First(c.fresh()).Error
	}),
	reads("raw update, Find", "tx.Clauses(key).Find(&x)", func(c *cell, tx *gorm.DB) error {
		return tx.Clauses(c.where()).Limit(1).Find(c.fresh()).Error
	}),
	reads("raw update, Scan", "tx.Model(&T{}).Clauses(key).Scan(&x)", func(c *cell, tx *gorm.DB) error {
		return tx.Model(c.empty()).Clauses(c.where()).Scan(c.fresh()).Error
	}),
	reads("raw update, G.First", "x, err = gorm.G[T](tx).Where(key).First(ctx)", func(c *cell, tx *gorm.DB) error {
		found, err := c.shape.generic.First(tx, c.where())
		c.h.ptr = found
		return err
	}),
	reads("raw update, LockRow", "gormlock.LockRow(tx, &x)", func(c *cell, tx *gorm.DB) error {
		return gormlock.LockRow(tx, c.h.ptr)
	}),
	reads("raw update, ScanRows", "rows, _ := tx.Model(&T{}).Clauses(key).Rows(); rows.Next(); tx.ScanRows(rows, &x)", func(c *cell, tx *gorm.DB) error {
		rows, err := tx.Model(c.empty()).Clauses(c.where()).Rows()
		if err != nil {
			return err
		}
		defer rows.Close()
		if rows.Next() {
			return tx.ScanRows(rows, c.fresh())
		}
		return rows.Err()
	}),
	one(reads("raw update, FindInBatches", "tx.Clauses(key).FindInBatches(&s, 1, …)", func(c *cell, tx *gorm.DB) error {
		s := c.slice()
		return tx.Clauses(c.where()).FindInBatches(s, 1, func(*gorm.DB, int) error { return nil }).Error
	})),
	{name: "bulk update, First", kind: blind, inside: true, code: `tx.Model(&T{}).Where(key).Update("a", 90); tx.First(&x)`,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			if err := tx.Model(c.empty()).Clauses(c.where()).Update("a", written).Error; err != nil {
				return err
			}
			return tx.Clauses(c.where()).First(c.fresh()).Error
		}), plural: true},
	{name: "Table update, First", kind: blind, inside: true, code: `tx.Table("ts").Where(key).Updates(map[string]any{"a": 90, "version": gorm.Expr("version + 1")}); tx.First(&x)`,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			values := map[string]any{"a": written}
			if !c.shape.xmin() {
				values[c.shape.version.DBName] = gorm.Expr(c.bumped())
			}
			if err := tx.Table(c.shape.table).Clauses(c.where()).Updates(values).Error; err != nil {
				return err
			}
			return tx.Clauses(c.where()).First(c.fresh()).Error
		}), plural: true},
	{name: "LockRow, then Save", kind: blind, inside: true, several: true, code: "gormlock.LockRow(tx, &x); x.A = 90; tx.Save(&x)", // it reads what it writes over
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			if err := gormlock.LockRow(tx, c.h.ptr); err != nil {
				return err
			}
			c.h.assign("A", written)
			return tx.Save(c.h.ptr).Error
		}), plural: true},
	{name: "VerifyVersion, then Update", kind: checked, inside: true, several: true, code: `gormlock.VerifyVersion(tx, &x); tx.Model(&x).Update("a", 90)`,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			if err := gormlock.VerifyVersion(tx, c.h.ptr); err != nil {
				return err
			}
			return tx.Model(c.h.ptr).Update("a", written).Error
		})},
	{name: "twice", kind: checked, inside: true, several: true, code: `tx.Model(&x).Update("a", 89); x.A = 90; tx.Save(&x)`,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			if err := tx.Model(c.h.ptr).Update("a", 89).Error; err != nil {
				return err
			}
			c.h.assign("A", written)
			return tx.Save(c.h.ptr).Error
		}), keeps: true},
}

// reads is a form that writes past the struct, and reads it again.
func reads(name, code string, read func(c *cell, tx *gorm.DB) error) form {
	return form{
		name: name, kind: blind, inside: true, plural: true, several: true,
		code: `tx.Exec("UPDATE ts SET a = 90, version = version + 1 WHERE …"); ` + code,
		prepare: plainly(func(c *cell, tx *gorm.DB) error {
			if err := c.raw(tx); err != nil {
				return err
			}
			return read(c, tx)
		}),
	}
}

// one is a form that GORM knows only for keys of one column.
func one(f form) form {
	f.only = func(s *shape) bool { return len(s.schema.PrimaryFields) == 1 }
	return f
}

// raw writes the row by SQL that moves its version.
func (c *cell) raw(tx *gorm.DB) error {
	return tx.Exec(fmt.Sprintf("UPDATE %s SET a = %d%s WHERE ?", c.shape.table, written, c.shape.moves()), c.whereIn("")).Error
}

// bumped is the next version as SQL.
func (c *cell) bumped() string {
	if c.shape.timed() {
		return c.shape.version.DBName + " + interval '1 second'"
	}
	return "COALESCE(" + c.shape.version.DBName + ", 0) + 1"
}
