package roots_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// seat has a key of two columns, of which the first one alone is unique as well.
type seat struct {
	Row     int64 `gorm:"primaryKey;autoIncrement:false;unique"`
	Number  int64 `gorm:"primaryKey;autoIncrement:false"`
	Text    string
	OrderID int64
	Order   *order `gormlock:"root"`
}

// An upsert on a part of the key meets rows that have another key. It is refused, and not left undone.
func TestRoot_upsertOnPartOfTheKey(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, append([]any{&seat{}}, models...))
	orders := []order{{}, {}}
	stand.Must(t, db.Create(&orders).Error)
	stand.Must(t, db.Create(&seat{Row: 1, Number: 1, OrderID: orders[0].ID}).Error)
	on := func(columns ...string) clause.OnConflict {
		conflict := clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"text", "order_id"})}
		for _, name := range columns {
			conflict.Columns = append(conflict.Columns, clause.Column{Name: name})
		}
		return conflict
	}
	for _, columns := range [][]string{{"row"}, {"row", "row"}} {
		err := db.Clauses(on(columns...)).Create(&seat{Row: 1, Number: 2, Text: "new", OrderID: orders[1].ID}).Error
		if err == nil || !strings.Contains(err.Error(), "other columns than the primary key") {
			t.Errorf("%v: %v", columns, err)
		}
	}
	stand.Must(t, db.Clauses(on("row", "number")).Create(&seat{Row: 1, Number: 1, Text: "new", OrderID: orders[1].ID}).Error)
	stand.Equal(t, "versions", [2]int64{versionOf(t, db, orders[0].ID), versionOf(t, db, orders[1].ID)}, [2]int64{3, 2})
}

// A statement writes no row that it is not about, even where the key of the model is not unique in the table.
func TestRoot_keyThatIsNotUnique(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(tx *gorm.DB) *gorm.DB{
		"update": func(tx *gorm.DB) *gorm.DB { return tx.Model(&note{}).Where("text = 'b'").Update("text", "c") },
		"update, RETURNING": func(tx *gorm.DB) *gorm.DB {
			return tx.Model(&[]note{}).Clauses(clause.Returning{}).Where("text = 'b'").Update("text", "c")
		},
		"delete":       func(tx *gorm.DB) *gorm.DB { return tx.Unscoped().Where("text = 'b'").Delete(&note{}) },
		"with its key": func(tx *gorm.DB) *gorm.DB { return tx.Model(&note{ID: 1}).Where("text = 'b'").Update("text", "c") },
	} {
		for in, begin := range stand.Begin {
			if in == "none" {
				continue
			}
			t.Run(name+", "+in, func(t *testing.T) {
				t.Parallel()
				db := stand.Versioned(t, models)
				orders := []order{{}, {}}
				stand.Must(t, db.Create(&orders).Error)
				stand.Must(t, db.Exec("ALTER TABLE notes DROP CONSTRAINT notes_pkey").Error)
				stand.Must(t, db.Exec("INSERT INTO notes (id, text, order_id) VALUES (1, 'a', 1), (1, 'b', 2)").Error)
				err := begin(db, func(tx *gorm.DB) error {
					_ = write(tx).Error // dropped: the commit says it again
					return nil
				})
				if in == "implicit" {
					err = write(db).Error
				}
				if err == nil || !strings.Contains(err.Error(), "unique in the table") {
					t.Error(err)
				}
				var texts string
				stand.Must(t, db.Raw("SELECT string_agg(text, '' ORDER BY order_id) FROM notes").Scan(&texts).Error)
				stand.Equal(t, "texts", texts, "ab")
				stand.Equal(t, "versions", [2]int64{versionOf(t, db, 1), versionOf(t, db, 2)}, [2]int64{1, 1})
			})
		}
	}
}

// GORM adds the key of a struct to the last of conditions that Or joins, so the statement is about other rows too. It is refused,
// and not left undone.
func TestRoot_orBesideAKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		write func(tx *gorm.DB) *gorm.DB
		texts string // what is stored, if it is not refused
	}{
		"Where and Or": {write: func(tx *gorm.DB) *gorm.DB {
			return tx.Model(&note{ID: 1}).Where("text = 'c'").Or("text = 'b'").Update("text", "x")
		}},
		"Or alone": {write: func(tx *gorm.DB) *gorm.DB { return tx.Model(&note{ID: 1}).Or("text = 'b'").Update("text", "x") }},
		"a slice": {write: func(tx *gorm.DB) *gorm.DB {
			return tx.Model(&[]note{{ID: 1}}).Where("text = 'c'").Or("text = 'b'").Update("text", "x")
		}},
		"Delete": {write: func(tx *gorm.DB) *gorm.DB { return tx.Where("text = 'c'").Or("text = 'b'").Delete(&note{ID: 1}) }},
		"in one Where": {texts: "xbc", write: func(tx *gorm.DB) *gorm.DB {
			return tx.Model(&note{ID: 1}).Where("text = 'a' OR text = 'b'").Update("text", "x")
		}},
		"without a key": {texts: "xxc", write: func(tx *gorm.DB) *gorm.DB {
			return tx.Model(&note{}).Where("text = 'a'").Or("text = 'b'").Update("text", "x")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, models)
			stand.Must(t, db.Create(&[]order{{}, {}}).Error)
			stand.Must(t, db.Exec("INSERT INTO notes (id, text, order_id) VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 2)").Error)
			err := c.write(db).Error
			if refused := err != nil && strings.Contains(err.Error(), "Or together with the key"); refused != (c.texts == "") {
				t.Error(err)
			}
			var texts string
			stand.Must(t, db.Raw("SELECT string_agg(text, '' ORDER BY id) FROM notes WHERE deleted_at IS NULL").Scan(&texts).Error)
			if c.texts == "" {
				c.texts = "abc"
				stand.Equal(t, "versions", [2]int64{versionOf(t, db, 1), versionOf(t, db, 2)}, [2]int64{1, 1})
			}
			stand.Equal(t, "texts", texts, c.texts)
		})
	}
}

// A write of a root's struct in another table is no move of the root.
func TestRoot_structInAnotherTable(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(tx *gorm.DB, o order) error{
		"create": func(tx *gorm.DB, o order) error { o.Version = 0; return tx.Table("archived").Create(&o).Error },
		"update": func(tx *gorm.DB, o order) error {
			return tx.Table("archived").Model(&order{ID: 2, Version: 1}).Update("title", "x").Error
		},
		"touch": func(tx *gorm.DB, _ order) error {
			return gormlock.Touch(tx.Table("archived"), &order{ID: 2, Version: 1})
		},
		"alias": func(tx *gorm.DB, _ order) error {
			return tx.Table("archived AS a").Model(&order{ID: 2, Version: 1}).Update("title", "x").Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, models, pgtest.Config(func(c *gorm.Config) { c.DisableForeignKeyConstraintWhenMigrating = true }))
			orders := []order{{}, {}}
			stand.Must(t, db.Create(&orders).Error)
			stand.Must(t, db.Exec("CREATE TABLE archived (LIKE orders INCLUDING ALL)").Error)
			stand.Must(t, db.Exec("INSERT INTO archived SELECT * FROM orders WHERE id = 2").Error)
			o := orders[0]
			if name != "create" {
				o = orders[1]
			}
			for range 2 {
				stand.Must(t, db.Exec("UPDATE archived SET version = 1").Error)
				stand.Must(t, db.Exec("DELETE FROM archived WHERE id = 1").Error)
				was := versionOf(t, db, o.ID)
				stand.Must(t, gormlock.Transaction(db, func(tx *gorm.DB) error {
					if err := write(tx, o); err != nil {
						return err
					}
					return tx.Create(&line{OrderID: o.ID}).Error
				}))
				stand.Equal(t, "version", versionOf(t, db, o.ID), was+1)
				stand.Must(t, gormlock.Transaction(db, func(tx *gorm.DB) error { // the table itself, by its name
					o := stand.Row[order](t, tx, o.ID)
					if err := tx.Table("orders").Model(&o).Update("title", "y").Error; err != nil {
						return err
					}
					return tx.Create(&line{OrderID: o.ID}).Error
				}))
				stand.Equal(t, "version", versionOf(t, db, o.ID), was+2)
			}
		})
	}
}
