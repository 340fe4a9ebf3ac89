package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A map may name a column in any way in which GORM finds it.
func TestMap_namesTheVersionInAnyWay(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&stand.RailsTask{}}, func(t *testing.T, db *gorm.DB) {
		stale := func(name string, err error) {
			t.Helper()
			stand.MustStale(t, err)
			if row := stand.Row[stand.RailsTask](t, db, 1); row.LockVersion != 5 || row.State != "a" {
				t.Errorf("%s: %+v", name, row)
			}
		}
		stand.Must(t, db.Create(&stand.RailsTask{ID: 1, State: "a"}).Error)
		for _, name := range []string{"lock_version", "LockVersion", "lockVersion", "LOCK_VERSION", "lock_Version"} {
			stand.Must(t, db.Exec("UPDATE rails_tasks SET lock_version = 5, state = 'a'").Error)
			read := stand.Row[stand.RailsTask](t, db, 1)
			values := func(version any) map[string]any { return map[string]any{name: version, "state": "b"} }
			bulk := func() *gorm.DB { return db.Model(&stand.RailsTask{}).Where("id = 1") }
			pointed := values(2)
			stale(name+", bulk", bulk().Updates(values(2)).Error)
			stale(name+", pointer", bulk().Updates(&pointed).Error)
			stale(name+", columns", bulk().UpdateColumns(values(2)).Error)
			stale(name+", struct", db.Model(&read).Updates(values(2)).Error)
			stale(name+", Update", bulk().Update(name, 2).Error)
			stale(name+", FirstOrCreate", db.Where("id = 1").Assign(values(2)).FirstOrCreate(&stand.RailsTask{}).Error)
			stale(name+", generics", func() error {
				_, err := gorm.G[stand.RailsTask](db).Where("id = 1").Set(clause.Assignment{Column: clause.Column{Name: "lock_version"}, Value: 2}).Update(t.Context())
				return err
			}())
			for what, err := range map[string]error{
				"expression": bulk().Updates(values(gorm.Expr("lock_version - 1"))).Error,
				"text":       bulk().Updates(values("junk")).Error,
				"upsert":     db.Model(&stand.RailsTask{}).Clauses(clause.OnConflict{UpdateAll: true}).Create(map[string]any{"id": 1, "state": "b", name: 2}).Error,
			} {
				if err == nil {
					t.Errorf("%s, %s: no error", name, what)
				}
			}
			if name != "lock_version" {
				if err := bulk().Updates(map[string]any{"lock_version": 5, name: 2, "state": "b"}).Error; err == nil {
					t.Errorf("%s: named twice", name)
				}
			}
			if row := stand.Row[stand.RailsTask](t, db, 1); row.LockVersion != 5 || row.State != "a" {
				t.Errorf("%s: %+v", name, row)
			}
			stand.Must(t, bulk().Updates(values(5)).Error)
			if row := stand.Row[stand.RailsTask](t, db, 1); row.LockVersion != 6 || row.State != "b" {
				t.Errorf("%s: %+v", name, row)
			}
		}
	})
}

// A Select that names what is no column leaves it out in GORM, and a Save that writes nothing said nothing.
func TestSelect_namesWhatIsThere(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&stand.LinedOrder{}, &stand.LinedLine{}}, func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Create(&stand.LinedOrder{Title: "a"}).Error)
		read := func() *stand.LinedOrder { o := stand.Row[stand.LinedOrder](t, db, 1); o.Title = "b"; return &o }
		for name, write := range map[string]func(names ...string) error{
			"Save": func(names ...string) error { return db.Select(names).Save(read()).Error },
			"Updates": func(names ...string) error {
				return db.Model(read()).Select(names).Updates(stand.LinedOrder{ID: 1, Title: "b"}).Error
			},
			"a map": func(names ...string) error {
				return db.Model(read()).Select(names).Updates(map[string]any{"title": "b"}).Error
			},
			"bulk": func(names ...string) error {
				return db.Model(&stand.LinedOrder{}).Where("id = 1").Select(names).Updates(map[string]any{"title": "b"}).Error
			},
			"Create": func(names ...string) error {
				made := &stand.LinedOrder{Title: "b"}
				defer db.Unscoped().Delete(made)
				return db.Select(names).Create(made).Error
			},
			"Delete": func(names ...string) error {
				return db.Transaction(func(tx *gorm.DB) error {
					if err := tx.Select(names).Delete(read()).Error; err != nil {
						return err
					}
					return gorm.ErrInvalidTransaction
				})
			},
		} {
			for _, names := range [][]string{{"title, id"}, {"titel"}, {"title AS t"}, {"lined_lines.title"}, {"title", "Linse"}, {"title", "Lines.Qty"}, {"title", "Lines.Qtyy"}} {
				err := write(names...)
				if err == nil || err == gorm.ErrInvalidTransaction { //nolint:errorlint // it is the test's own
					t.Errorf("%s, Select(%q): %v", name, names, err)
				}
			}
			if row := stand.Row[stand.LinedOrder](t, db, 1); row.Title != "a" || row.Version != 1 {
				t.Errorf("%s: %+v", name, row)
			}
			for _, names := range [][]string{{"title"}, {"Title"}, {"lined_orders.title"}, {"*"}, {"lined_orders.*"}, {"title", "Lines"}, {"title", clause.Associations}, {"TITLE"}, {`"title"`}} {
				if err := write(names...); err != nil && err != gorm.ErrInvalidTransaction { //nolint:errorlint // it is the test's own
					t.Errorf("%s, Select(%q): %v", name, names, err)
				}
				stand.Must(t, db.Exec("UPDATE lined_orders SET title = 'a', version = 1 WHERE id = 1").Error)
			}
		}
	})
}

// A column that the model does not have is written by its name in a map, and a name of a child's column must be one.
func TestSelect_ofOtherColumns(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&stand.LinedOrder{}, &stand.LinedLine{}}, func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Exec("ALTER TABLE lined_orders ADD COLUMN legacy bigint").Error)
		stand.Must(t, db.Create(&stand.LinedOrder{Title: "a"}).Error)
		stand.Must(t, db.Model(&stand.LinedOrder{ID: 1, Version: 1}).Select("title", "legacy").Updates(map[string]any{"title": "b", "legacy": 5}).Error)
		var n int64
		stand.Must(t, db.Raw("SELECT legacy FROM lined_orders").Scan(&n).Error)
		stand.Equal(t, "legacy", n, 5)
		order := stand.LinedOrder{Title: "c", Lines: []stand.LinedLine{{Qty: 7}}}
		if err := db.Select("Title", "Lines", "Lines.Qtyy").Create(&order).Error; err == nil {
			t.Error("a line without what was selected")
		}
		stand.Equal(t, "orders", countOf[stand.LinedOrder](t, db), 1)
	})
}

// A Select that would store a child, or what a struct belongs to, and not that they belong together, is an error.
func TestSelect_withoutTheForeignKey(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&stand.LinedOrder{}, &stand.LinedLine{}, &chamber{}, &attic{}}, func(t *testing.T, db *gorm.DB) {
		for name, err := range map[string]error{
			"a child":           db.Select("Title", "Lines", "Lines.Qty").Create(&stand.LinedOrder{Title: "a", Lines: []stand.LinedLine{{Qty: 1}}}).Error,
			"an owner":          db.Select("Room").Create(&attic{Room: &chamber{Name: "a"}}).Error,
			"an owner, by all":  db.Select("Version", clause.Associations).Create(&attic{Room: &chamber{Name: "a"}}).Error,
			"an owner that is":  db.Select("Room", "Version").Create(&attic{Room: &chamber{ID: 9, Name: "a"}}).Error,
			"an owner, updated": db.Model(&attic{ID: 1, Version: 1, Room: &chamber{Name: "a"}}).Select("Version", "Room").Updates(attic{Version: 1}).Error,
		} {
			if err == nil || !strings.Contains(err.Error(), "foreign key") {
				t.Errorf("%s: %v", name, err)
			}
		}
		stand.Equal(t, "chambers", db.Find(&[]chamber{}).RowsAffected, 0)
		stand.Must(t, db.Select("Title", "Lines", "Lines.Qty", "Lines.OrderID").Create(&stand.LinedOrder{Title: "a", Lines: []stand.LinedLine{{Qty: 1}}}).Error)
		a := attic{Room: &chamber{Name: "a"}}
		stand.Must(t, db.Select("RoomID", "Room").Create(&a).Error)
		stand.Must(t, db.Select("Version", "Room").Updates(&a).Error) // it belongs there already
	})
}

// What Omit leaves out of a Save is left out too if the Save stores a new row.
func TestOmit_inASaveOfANewRow(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&stand.Account{}}, func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Omit("Note").Save(&stand.Account{ID: 7, Balance: 5, Note: "secret"}).Error)
		row := stand.Row[stand.Account](t, db, 7)
		if row.Note != "" || row.Balance != 5 || row.Version != 1 {
			t.Errorf("%+v", row)
		}
	})
}

// A map that was read under another spelling of the version loses it with the transaction that had written it.
func TestMap_readUnderAnotherName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"version", "Version", "VERSION"} {
		db := stand.Versioned(t, []any{&entry{}})
		mine := entry{Amount: 1}
		stand.Must(t, db.Create(&mine).Error)
		row := map[string]any{}
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.Must(t, tx.Model(&entry{}).Where("id = ?", mine.ID).Update("amount", 2).Error)
			stand.Must(t, tx.Model(&entry{}).Select(`amount, version AS "`+name+`"`).Take(&row, mine.ID).Error)
		})
		stand.Must(t, db.Model(&entry{}).Where("id = ?", mine.ID).Update("amount", 7).Error)
		if err := db.Model(&entry{ID: mine.ID}).Updates(row).Error; err == nil {
			t.Errorf("%s: a rival's row is overwritten with %v", name, row)
		}
	}
}
