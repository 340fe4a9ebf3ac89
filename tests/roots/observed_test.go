package roots_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// born is a part whose foreign key the server makes: by a default, or by a trigger.
type born struct {
	ID      int64
	Text    string
	OrderID int64  `gorm:"default:2"`
	Order   *order `gormlock:"root"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

// bornPlain has no version.
type bornPlain struct {
	ID        int64
	Text      string `gorm:"unique"`
	OrderID   *int64 `gorm:"default:2"`
	Order     *order `gormlock:"root"`
	DeletedAt gorm.DeletedAt
}

// sheet and cell have keys that can be spelled in two ways.
type sheet struct {
	ID      string `gorm:"type:uuid;primaryKey"`
	Title   string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type cell struct {
	ID      int64
	Text    string
	SheetID string `gorm:"type:uuid"`
	Sheet   *sheet `gormlock:"root"`
}

func versionsOf(t *testing.T, db *gorm.DB) [3]int64 {
	t.Helper()
	var all []int64
	stand.Must(t, db.Unscoped().Model(&order{}).Order("id").Limit(3).Pluck("version", &all).Error)
	return [3]int64(all)
}

// What the server made of the foreign key moves the root, whoever gave it.
func TestRoot_ofTheRowAsItIsStored(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, c := range map[string]struct {
		before  string // SQL
		write   func(tx *gorm.DB) error
		moved   [3]bool
		refused string
	}{
		"a default":             {moved: [3]bool{1: true}, write: func(tx *gorm.DB) error { return tx.Create(&born{Text: "n"}).Error }},
		"a default, of a slice": {moved: [3]bool{1: true}, write: func(tx *gorm.DB) error { return tx.Create(&[]born{{Text: "n"}, {Text: "o"}}).Error }},
		"a default, of a map":   {moved: [3]bool{1: true}, write: func(tx *gorm.DB) error { return tx.Model(&born{}).Create(map[string]any{"text": "n"}).Error }},
		"a default, of maps": {moved: [3]bool{1: true}, write: func(tx *gorm.DB) error {
			return tx.Model(&born{}).Create(&[]map[string]any{{"text": "n"}, {"text": "m"}}).Error
		}},
		"a default, of G":              {moved: [3]bool{1: true}, write: func(tx *gorm.DB) error { return gorm.G[born](tx).Create(ctx, &born{}) }},
		"a default, unversioned":       {moved: [3]bool{1: true}, write: func(tx *gorm.DB) error { return tx.Create(&bornPlain{}).Error }},
		"a default, of an upsert":      {moved: [3]bool{1: true}, write: func(tx *gorm.DB) error { return tx.Clauses(stand.UpdateAll).Create(&born{}).Error }},
		"a default, of a plain upsert": {moved: [3]bool{1: true}, write: func(tx *gorm.DB) error { return tx.Clauses(stand.UpdateAll).Create(&bornPlain{ID: 9}).Error }},
		"a default, DoNothing": {moved: [3]bool{1: true}, write: func(tx *gorm.DB) error {
			return tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&[]bornPlain{{ID: 10, Text: "x"}, {ID: 11, Text: "y"}}).Error
		}},
		"a default, caller's RETURNING": {moved: [3]bool{1: true}, write: func(tx *gorm.DB) error {
			return tx.Clauses(clause.Returning{Columns: []clause.Column{{Name: "id"}}}).Create(&born{}).Error
		}},
		"a trigger": {before: "CREATE FUNCTION to3() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.order_id = 3; RETURN NEW; END$$; CREATE TRIGGER t BEFORE INSERT OR UPDATE ON borns FOR EACH ROW EXECUTE FUNCTION to3()",
			moved: [3]bool{true, false, true}, write: func(tx *gorm.DB) error { return tx.Create(&born{OrderID: 1}).Error }},
		"a trigger on update": {before: "CREATE FUNCTION to3() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.order_id = 3; RETURN NEW; END$$; CREATE TRIGGER t BEFORE UPDATE ON borns FOR EACH ROW EXECUTE FUNCTION to3()",
			moved: [3]bool{true, false, true}, write: func(tx *gorm.DB) error { return tx.Model(&born{ID: 1, Version: 1}).Update("text", "x").Error }},
		"a trigger on update in bulk": {before: "CREATE FUNCTION to3() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.order_id = 3; RETURN NEW; END$$; CREATE TRIGGER t BEFORE UPDATE ON borns FOR EACH ROW EXECUTE FUNCTION to3()",
			moved: [3]bool{true, false, true}, write: func(tx *gorm.DB) error { return tx.Model(&born{}).Where("true").Update("text", "x").Error }},
		"a trigger on update, RETURNING": {before: "CREATE FUNCTION to3() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.order_id = 3; RETURN NEW; END$$; CREATE TRIGGER t BEFORE UPDATE ON borns FOR EACH ROW EXECUTE FUNCTION to3()",
			moved: [3]bool{true, false, true}, write: func(tx *gorm.DB) error {
				var all []born
				err := tx.Model(&all).Clauses(clause.Returning{}).Where("true").Update("text", "x").Error
				if len(all) != 1 || all[0].Text != "x" {
					return errors.Join(err, errors.New("the caller's RETURNING was taken from him"))
				}
				return err
			}},
		"a trigger to a root that is gone": {before: "CREATE FUNCTION to9() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.order_id = 9; RETURN NEW; END$$; CREATE TRIGGER t BEFORE INSERT ON born_plains FOR EACH ROW EXECUTE FUNCTION to9()",
			refused: "is gone", write: func(tx *gorm.DB) error { return tx.Create(&bornPlain{}).Error }},
		"DoUpdates assigns the key": {moved: [3]bool{true, true}, write: func(tx *gorm.DB) error {
			return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.Assignments(map[string]any{"order_id": 2})}).Create(&bornPlain{ID: 1, OrderID: one()}).Error
		}},
		"an upsert revives a part": {before: "UPDATE born_plains SET deleted_at = now()", moved: [3]bool{true}, write: func(tx *gorm.DB) error {
			return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.Assignments(map[string]any{"deleted_at": nil})}).Create(&bornPlain{ID: 1, OrderID: one()}).Error
		}},
		"an upsert revives a part of another": {before: "UPDATE born_plains SET deleted_at = now(), order_id = 3", moved: [3]bool{2: true}, write: func(tx *gorm.DB) error {
			return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.Assignments(map[string]any{"deleted_at": nil})}).Create(&bornPlain{ID: 1, OrderID: one()}).Error
		}},
		"a text for a number":             {moved: [3]bool{true, true}, write: func(tx *gorm.DB) error { return tx.Model(&born{ID: 1, Version: 1}).Update("order_id", "02").Error }},
		"a text for a number, octal":      {moved: [3]bool{true}, write: func(tx *gorm.DB) error { return tx.Model(&bornPlain{ID: 1}).Update("order_id", "010").Error }, refused: "is gone"},
		"a text for a number in a create": {moved: [3]bool{1: true}, write: func(tx *gorm.DB) error { return tx.Model(&born{}).Create(map[string]any{"order_id": "02"}).Error }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, append([]any{&born{}, &bornPlain{}}, models...), pgtest.Config(func(c *gorm.Config) { c.DisableForeignKeyConstraintWhenMigrating = true }))
			stand.Must(t, db.Create(&[]order{{}, {}, {}}).Error)
			stand.Must(t, db.Create(&born{OrderID: 1}).Error)
			stand.Must(t, db.Create(&bornPlain{OrderID: one(), Text: "one"}).Error)
			stand.Must(t, db.Exec("UPDATE orders SET version = 1").Error)
			for _, sql := range strings.SplitAfter(c.before, "$$; ") {
				if sql != "" {
					stand.Must(t, db.Exec(sql).Error)
				}
			}
			err := db.Transaction(c.write)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("want %q, got %v", c.refused, err)
				}
				stand.Equal(t, "versions", versionsOf(t, db), [3]int64{1, 1, 1})
				return
			}
			stand.Must(t, err)
			want := [3]int64{}
			for i := range want {
				want[i] = map[bool]int64{false: 1, true: 2}[c.moved[i]]
			}
			stand.Equal(t, "versions", versionsOf(t, db), want)
		})
	}
}

// A uuid is one, whoever writes it in capitals: its root moves once, and a struct of it is compared.
func TestRoot_spelledOtherwise(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&sheet{}, &cell{}})
	const low, high = "5ee26e5a-0000-4000-8000-0000000000aa", "5EE26E5A-0000-4000-8000-0000000000AA"
	s := stand.Made(t, db, sheet{ID: low})
	version := func() int64 { return stand.Row[sheet](t, db, low).Version }
	stand.Must(t, db.Create(&cell{SheetID: high}).Error)
	stand.Equal(t, "version", version(), 2)
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		return errors.Join(tx.Create(&cell{SheetID: high}).Error, tx.Create(&cell{SheetID: low}).Error, tx.Model(&cell{}).Where("true").Update("text", "x").Error,
			tx.Create(&cell{SheetID: high}).Error)
	}))
	stand.Equal(t, "once", version(), 3)
	stand.MustStale(t, db.Omit("Sheet").Create(&cell{SheetID: high, Sheet: &s}).Error)
	stand.Must(t, db.First(&s).Error)
	stand.Must(t, db.Omit("Sheet").Create(&cell{SheetID: high, Sheet: &s}).Error)
	stand.Equal(t, "in memory", s.Version, 4)
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		o := sheet{ID: high, Version: 4}
		return errors.Join(tx.Model(&o).Update("title", "x").Error, tx.Create(&cell{SheetID: low}).Error)
	}))
	stand.Equal(t, "its own write", version(), 5)

	// an update and a delete by a struct that spells the key otherwise than its row, with and without the root
	stand.Must(t, db.First(&s).Error)
	c := stand.Made(t, db, cell{SheetID: high})
	c = cell{ID: c.ID, SheetID: high}
	stand.Must(t, db.Model(&c).Update("text", "y").Error)
	stand.Equal(t, "update", version(), 7)
	c.Sheet = &s
	stand.MustStale(t, db.Omit("Sheet").Model(&c).Update("text", "z").Error)
	stand.Must(t, db.First(&s).Error)
	stand.Must(t, db.Omit("Sheet").Model(&c).Update("text", "z").Error)
	stand.Equal(t, "update, held", [2]int64{version(), s.Version}, [2]int64{8, 8})
	stand.Must(t, db.Delete(&c).Error)
	stand.Equal(t, "delete", [2]int64{version(), s.Version}, [2]int64{9, 9})
}

// What a bulk statement says of its rows holds when it begins: neither the move of a root nor other writers change which rows
// it is about.
func TestRoot_bulk(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, models, func(t *testing.T, db *gorm.DB) {
		o := stand.Made(t, db, order{})
		stand.Must(t, db.Create(&[]line{{OrderID: o.ID}, {OrderID: o.ID}}).Error)
		ofVersion := func(tx *gorm.DB) *gorm.DB {
			return tx.Where("order_id IN (?)", tx.Session(&gorm.Session{NewDB: true}).Model(&order{}).Select("id").Where("version = ?", versionOf(t, db, o.ID)))
		}
		done := db.Model(&line{}).Scopes(ofVersion).Update("qty", 7)
		stand.Must(t, done.Error)
		stand.Equal(t, "rows", done.RowsAffected, 2)
		var l line
		stand.Must(t, db.First(&l).Error)
		stand.Equal(t, "qty", l.Qty, 7)
		done = db.Model(&l).Scopes(ofVersion).Update("qty", 8)
		stand.Must(t, done.Error)
		stand.Equal(t, "rows", done.RowsAffected, 1)
		done = db.Scopes(ofVersion).Delete(&line{})
		stand.Must(t, done.Error)
		stand.Equal(t, "rows", done.RowsAffected, 2)
		stand.Equal(t, "version", versionOf(t, db, o.ID), 5)
	})
}

func one() *int64 { n := int64(1); return &n }

// Parts that are stored between the look and the write of a bulk statement are not written by it: it is as if it had come first.
func TestRoot_bulkAmongWriters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		write func(tx *gorm.DB) *gorm.DB
		qty   int64 // of the line that another writer stores
		rows  int64
	}{
		"update":      {qty: 1, rows: 1, write: func(tx *gorm.DB) *gorm.DB { return tx.Model(&line{}).Where("qty >= 0").Update("qty", 5) }},
		"of no row":   {qty: 100, rows: 0, write: func(tx *gorm.DB) *gorm.DB { return tx.Model(&line{}).Where("qty = 100").Update("qty", 0) }},
		"delete":      {qty: 1, rows: 1, write: func(tx *gorm.DB) *gorm.DB { return tx.Where("qty >= 0").Delete(&line{}) }},
		"soft delete": {qty: 1, rows: 1, write: func(tx *gorm.DB) *gorm.DB { return tx.Where("text = ''").Delete(&note{}) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, models)
			orders := []order{{}, {}}
			stand.Must(t, db.Create(&orders).Error)
			stand.Must(t, db.Create(&line{OrderID: orders[0].ID}).Error)
			stand.Must(t, db.Omit("Order").Create(&note{OrderID: &orders[0].ID}).Error)
			met := false
			meet := func(at *gorm.DB) {
				if table := at.Statement.Table; !met && (table == "lines" || table == "notes") {
					met = true
					stand.Must(t, db.Session(&gorm.Session{NewDB: true}).Exec("INSERT INTO lines (qty, order_id) VALUES (?, ?)", c.qty, orders[1].ID).Error)
					stand.Must(t, db.Session(&gorm.Session{NewDB: true}).Exec("INSERT INTO notes (text, order_id) VALUES ('', ?)", orders[1].ID).Error)
				}
			}
			stand.Must(t, db.Callback().Update().After("gormlock:before_write").Before("gorm:update").Register("meet", meet))
			stand.Must(t, db.Callback().Delete().After("gormlock:before_write").Before("gorm:delete").Register("meet", meet))
			done := c.write(db)
			stand.Must(t, done.Error)
			stand.Equal(t, "met", met, true)
			stand.Equal(t, "rows", done.RowsAffected, c.rows)
			stand.Equal(t, "the second root", versionOf(t, db, orders[1].ID), 1)
		})
	}
}
