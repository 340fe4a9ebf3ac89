package versions_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// GORM keeps the last of two columns of one name, so a join with a star gave a struct the version of another table's row.
func TestDoubledColumns(t *testing.T) {
	t.Parallel()
	type order struct {
		ID      int64
		Note    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	type line struct {
		LineID  int64 `gorm:"primaryKey"`
		OrderID int64
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	type tag struct {
		TagID   int64 `gorm:"primaryKey"`
		OrderID int64
		Note    string
	}
	type form struct {
		ID, Version int64
		Note        string
	}
	stand.OnBoth(t, []any{&order{}, &line{}, &tag{}}, func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Create(&order{ID: 1, Note: "order"}).Error)
		stand.Must(t, db.Create(&line{LineID: 7, OrderID: 1, Version: 2}).Error)
		stand.Must(t, db.Create(&tag{TagID: 3, OrderID: 1, Note: "tag"}).Error)
		const lines, tags = "JOIN lines ON lines.order_id = orders.id", "JOIN tags ON tags.order_id = orders.id"
		var orders []order
		var forms []form
		var views []struct{ Note string }
		var maps []map[string]any
		for name, err := range map[string]error{
			"Raw, Find":      db.Raw("SELECT * FROM orders " + lines).Find(&orders).Error,
			"Raw, Scan":      db.Raw("SELECT * FROM orders " + lines).Scan(&orders).Error,
			"Raw, a comment": db.Raw("SELECT * FROM orders " + lines + " -- all").Find(&orders).Error,
			"Select":         db.Select("*").Joins(lines).Find(&orders).Error,
			"both":           db.Select("orders.*, lines.*").Joins(lines).Find(&orders).Error,
			"one beside":     db.Select("orders.*, lines.version").Joins(lines).Find(&orders).Error,
			"written twice":  db.Raw("SELECT orders.id, orders.version, lines.version FROM orders " + lines).Find(&orders).Error,
			"Select twice":   db.Select("orders.id", "orders.version", "lines.version").Joins(lines).Find(&orders).Error,
			"another AS":     db.Select("id", "version", "7 AS version").Find(&orders).Error,
			"another column": db.Select("orders.*, tags.note").Joins(tags).First(&order{}).Error,
			"Table":          db.Table("orders, lines").Find(&orders).Error,
			"a sub-query":    db.Table("(SELECT * FROM orders " + lines + ") AS orders").Find(&orders).Error,
			"a form":         db.Model(&order{}).Select("*").Joins(lines).Find(&forms).Error,
			"a form, Scan":   db.Model(&order{}).Select("*").Joins(lines).Scan(&forms).Error,
			"own clauses":    db.Clauses(clause.Select{Expression: clause.Expr{SQL: "orders.*, lines.*"}}, clause.From{Joins: []clause.Join{{Expression: clause.Expr{SQL: lines}}}}).Find(&orders).Error,
			"an own FROM":    db.Clauses(clause.From{Tables: []clause.Table{{Name: "orders"}, {Name: "lines"}}}).Find(&orders).Error,
			"maps":           db.Table("orders").Select("*").Joins(lines).Find(&maps).Error,
			"maps, Scan":     db.Table("orders").Select("*").Joins(lines).Scan(&maps).Error,
			"one, Scan":      db.Model(&order{}).Select("*").Joins(lines).Scan(&order{}).Error,
			"a map, Scan":    db.Model(&order{}).Select("*").Joins(lines).Scan(&map[string]any{}).Error,
			"pointers, Scan": db.Model(&order{}).Select("*").Joins(lines).Scan(&[]*order{}).Error,
			"a star and one": db.Select("*, lines.version").Joins(lines).Find(&orders).Error,
			"of another":     db.Select("orders.*, lines.version").Joins(lines).Find(&orders).Error,
		} {
			if err == nil || !strings.Contains(err.Error(), "returns two columns") {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, err := range map[string]error{
			"Joins":       db.Joins(lines).Find(&orders).Error,
			"the model's": db.Select("orders.*").Joins(lines).Find(&orders).Error,
			"named":       db.Select("orders.*, lines.version AS of_line").Joins(lines).Find(&orders).Error,
			"a form":      db.Raw("SELECT orders.*, tags.note AS tag FROM orders " + tags).Scan(&forms).Error,
			"repeated":    db.Select("*, id").Find(&orders).Error,
			"version":     db.Select("orders.*, orders.version").Joins(lines).Find(&orders).Error,
			"its version": db.Raw("SELECT *, version FROM orders").Scan(&orders).Error,
			"Scan":        db.Model(&order{}).Select("*, 1 AS total").Joins(lines).Scan(&views).Error,
			"Scan, one":   db.Model(&order{}).Select("*, 1 AS total").Joins(lines).Scan(&struct{ ID int64 }{}).Error,
			"Raw, a view": db.Raw("SELECT *, 1 AS total FROM orders " + lines).Scan(&views).Error,
			"no version":  db.Model(&order{}).Select("*").Joins(lines).Find(&views).Error,
			"of others":   db.Raw("SELECT * FROM orders " + tags).Scan(&maps).Error,
			"USING":       db.Raw("SELECT * FROM lines JOIN tags USING (order_id)").Scan(&maps).Error,
			"Count":       db.Model(&order{}).Joins(lines).Select("count(*), max(orders.id)").Row().Err(),
			"nothing":     db.Select("*").Joins(lines).Where("orders.id = 99").Find(&orders).Error,
		} {
			if err != nil {
				t.Errorf("%s is refused: %v", name, err)
			}
		}
		stand.Must(t, db.Select("orders.*").Joins(lines).Find(&orders).Error)
		orders[0].Note = "saved"
		stand.Must(t, db.Save(&orders[0]).Error)
		stand.Must(t, db.Raw("SELECT * FROM orders "+lines).Row().Err())
		if db.Name() == "postgres" { // a text that writes is not sent again
			stand.Must(t, db.Raw("UPDATE orders SET note = 'raw' FROM lines WHERE lines.order_id = orders.id RETURNING orders.*, lines.*").Find(&orders).Error)
			stand.MustBeUnread(t, db.Save(&orders[0]).Error)
			for name, text := range map[string]string{
				"UPDATE": "UPDATE orders SET note = 'raw' FROM lines WHERE lines.order_id = orders.id RETURNING *",
				"DELETE": "DELETE FROM lines USING orders WHERE lines.order_id = orders.id AND false OR orders.id = 99 RETURNING *",
				"WITH":   "WITH all_lines AS (UPDATE lines SET order_id = order_id RETURNING *) UPDATE orders SET note = 'raw' FROM all_lines WHERE order_id = orders.id RETURNING *",
			} {
				orders = nil
				if err := db.Raw(text).Find(&orders).Error; err != nil {
					t.Errorf("%s: %v", name, err)
				}
				for i := range orders {
					stand.MustBeUnread(t, db.Save(&orders[i]).Error)
				}
				if err := db.Raw(text).Scan(&orders).Error; err == nil && name != "DELETE" {
					t.Errorf("%s, Scan: it is no error", name)
				}
			}
		}
	})
}

// Scan reads all of the rows that another table doubles into a struct without a version, and no version into one that has it.
func TestDoubledColumns_intoStructsWithout(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&entry{}, &softEntry{}})
	for i := range int64(3) {
		stand.Must(t, db.Create(&entry{Amount: i, Text: "a"}).Error)
	}
	stand.Must(t, db.Create(&softEntry{}).Error)
	const text = "SELECT *, now() AS at, 1.5::numeric AS part, NULL AS none, entries.amount AS n, entries.text AS words FROM entries CROSS JOIN soft_entries ORDER BY entries.amount"
	type view struct {
		N     int
		Words string
		At    time.Time
		Part  float64
		None  *string
	}
	for name, read := range map[string]func(db *gorm.DB, into any) *gorm.DB{
		"Raw": func(db *gorm.DB, into any) *gorm.DB { return db.Raw(text).Scan(into) },
		"Model": func(db *gorm.DB, into any) *gorm.DB {
			return db.Model(&entry{}).Select("*, now() AS at, 1.5 AS part, NULL AS none, entries.amount AS n, entries.text AS words").Joins("CROSS JOIN soft_entries").Order("entries.amount").Scan(into)
		},
	} {
		stand.InTx(t, db, func(tx *gorm.DB) {
			for _, db := range []*gorm.DB{db, tx} {
				var all []view
				got := read(db, &all)
				stand.Must(t, got.Error)
				if got.RowsAffected != 3 || len(all) != 3 || all[2].N != 2 || all[2].Words != "a" || all[0].At.IsZero() || all[0].Part != 1.5 || all[0].None != nil {
					t.Errorf("%s: %d, %+v", name, got.RowsAffected, all)
				}
				var one view
				stand.Must(t, read(db, &one).Error)
				stand.Equal(t, name, one.Words, "a")
				var structs []entry
				var first entry
				for _, err := range []error{read(db, &structs).Error, read(db, &first).Error} {
					if err == nil || !strings.Contains(err.Error(), "two columns") {
						t.Errorf("%s: %v", name, err)
					}
				}
				for _, e := range append(structs, first) {
					if err := db.Session(&gorm.Session{}).Model(&e).Update("amount", 9).Error; err == nil {
						t.Errorf("%s: a struct that was refused is written: %+v", name, e)
					}
				}
			}
		})
	}
	var ids []int64
	stand.Must(t, db.Select("DISTINCT ON (entries.id) entries.id, entries.*").Joins("CROSS JOIN soft_entries").Find(&[]entry{}).Error)
	stand.Must(t, db.Model(&entry{}).Joins("CROSS JOIN soft_entries").Select("entries.id").Scan(&ids).Error)
	stand.Equal(t, "ids", len(ids), 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.WithContext(ctx).Raw(text).Scan(&[]view{}).Error; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// PostgreSQL gives a sub-query in the list the name of its column.
func TestDoubledColumns_ofASubQuery(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&entry{}, &softEntry{}})
	mine := staleEntry(t, db)
	stand.Must(t, db.Create(&softEntry{ID: mine.ID}).Error)
	var read entry
	err := db.Select("id", "amount", "version", "(SELECT version FROM soft_entries WHERE soft_entries.id = entries.id)").First(&read, mine.ID).Error
	if err == nil || !strings.Contains(err.Error(), `two columns "version"`) {
		t.Errorf("%v, %+v", err, read)
	}
	stand.Must(t, db.Select("*", "(SELECT version FROM soft_entries WHERE soft_entries.id = entries.id) AS other").First(&read, mine.ID).Error)
	stand.Equal(t, "version", read.Version, 2)
}

// gormlock names a column as the field itself, where the server leaves out versions that a rollback may take back.
func TestDoubledColumns_ofItsOwn(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New(gormlock.PlainTransactions())))
	stand.Must(t, db.AutoMigrate(&entry{}))
	stand.Must(t, db.Create(&entry{Amount: 1}).Error)
	stand.InTx(t, db, func(tx *gorm.DB) {
		for name, read := range map[string]func(into *entry) error{
			"Scan":        func(into *entry) error { return tx.Model(&entry{}).Scan(into).Error },
			"Table":       func(into *entry) error { return tx.Table("entries AS entries").Take(into).Error },
			"Table, Scan": func(into *entry) error { return tx.Model(&entry{}).Table("entries AS entries").Scan(into).Error },
			"Joins": func(into *entry) error {
				return tx.Table("entries AS entries").Joins("CROSS JOIN (SELECT 1 AS one) AS o").Take(into).Error
			},
		} {
			var found entry
			stand.Must(t, read(&found))
			stand.Equal(t, name, found.Version, 1)
		}
	})
}
