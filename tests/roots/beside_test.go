package roots_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// pair is a part of two roots, and may be one of the same row twice.
type pair struct {
	ID          int64
	Text        string
	FromOrderID *int64
	FromOrder   *order `gormlock:"root"`
	ToOrderID   int64
	ToOrder     *order `gormlock:"root"`
	Version     int64  `gorm:"not null;default:1" gormlock:"version"`
}

// stock has a key of two parts, of which one may be zero, and belongs to a shop of such a key.
type stock struct {
	Row         int64 `gorm:"primaryKey;autoIncrement:false"`
	Column      int64 `gorm:"primaryKey;autoIncrement:false"`
	Text        string
	ShopCountry string `gorm:"size:40"`
	ShopNumber  int64
	Shop        *shop `gorm:"foreignKey:ShopCountry,ShopNumber;references:Country,Number" gormlock:"root"`
	Version     int64 `gorm:"not null;default:1" gormlock:"version"`
}

// tagging is the row of a join table, and a part of its order.
type tagging struct {
	LabelID int64  `gorm:"primaryKey"`
	OrderID int64  `gorm:"primaryKey"`
	Order   *order `gormlock:"root"`
}

type label struct {
	ID     int64
	Orders []order `gorm:"many2many:taggings;joinForeignKey:LabelID;joinReferences:OrderID"`
}

func pointerTo(id int64) *int64 { return &id }

// Two roots of one part move once each, one that is both moves once.
func TestRoot_two(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, append([]any{&pair{}}, models...), func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Create(&[]order{{}, {}, {}}).Error)
		is := func(what string, want ...int64) {
			t.Helper()
			stand.Equal(t, what, versionsOf(t, db), [3]int64(want))
		}
		p := stand.Made(t, db, pair{FromOrderID: pointerTo(1), ToOrderID: 2})
		is("create", 2, 2, 1)
		stand.Must(t, db.Model(&p).Update("to_order_id", 3).Error)
		is("moved", 3, 3, 2)
		stand.Must(t, db.Model(&p).Update("from_order_id", nil).Error)
		is("to none", 4, 3, 3)
		stand.Must(t, db.Model(&p).Updates(pair{FromOrderID: pointerTo(3)}).Error)
		is("both are one", 4, 3, 4)
		var two, three order
		stand.Must(t, db.First(&two, 2).Error)
		stand.Must(t, db.First(&three, 3).Error)
		p.FromOrder, p.ToOrder = &two, &three
		stand.Must(t, db.Save(&p).Error)
		is("by what it holds", 4, 4, 5)
		stand.Equal(t, "in memory", [2]int64{two.Version, three.Version}, [2]int64{4, 5})
		p.FromOrderID = pointerTo(1)
		if err := db.Save(&p).Error; err == nil {
			t.Error("it names one root and holds another")
		}
		p.FromOrderID = pointerTo(2)
		stand.Must(t, db.Where("text = ''").Delete(&pair{}).Error)
		is("deleted", 4, 5, 6)
	})
}

func TestRoot_zeroInKeys(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, []any{&shop{}, &stock{}}, func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Create([]shop{{Country: "fr", Number: 0}, {Country: "", Number: 2}}).Error)
		version := func(number int64) int64 {
			var s shop
			stand.Must(t, db.Where("number = ?", number).Take(&s).Error)
			return s.Version
		}
		s := stand.Made(t, db, stock{Row: 1, ShopCountry: "fr"})
		stand.Equal(t, "create", version(0), 2)
		stand.Must(t, db.Model(&s).Update("text", "x").Error)
		stand.Equal(t, "update", version(0), 3)
		s.ShopCountry, s.ShopNumber = "", 2
		stand.Must(t, db.Save(&s).Error)
		stand.Equal(t, "moved", [2]int64{version(0), version(2)}, [2]int64{4, 2})
		other := stock{Column: 1, ShopNumber: 2}
		stand.Must(t, db.Save(&other).Error)
		stand.Equal(t, "saved", version(2), 3)
		stand.Must(t, db.Clauses(stand.UpdateAll).Create(&stock{Row: 1, Version: s.Version, ShopCountry: "fr"}).Error)
		stand.Equal(t, "upsert", [2]int64{version(0), version(2)}, [2]int64{5, 4})
		stand.Must(t, db.Delete(&other).Error)
		stand.Equal(t, "delete", version(2), 5)
	})
}

// The rows of a join table are parts too.
func TestRoot_joinTable(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, append([]any{&label{}, &tagging{}}, models...), func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.SetupJoinTable(&label{}, "Orders", &tagging{}))
		orders := []order{{}, {}, {}}
		stand.Must(t, db.Create(&orders).Error)
		l := stand.Made(t, db, label{})
		is := func(what string, want ...int64) {
			t.Helper()
			stand.Equal(t, what, versionsOf(t, db), [3]int64(want))
		}
		stand.Must(t, db.Model(&l).Association("Orders").Append(&orders[0]))
		is("append", 2, 1, 1)
		stand.Must(t, db.First(&orders[0], orders[0].ID).Error)
		stand.Must(t, db.Model(&l).Association("Orders").Append(&orders[0]))
		is("append again", 2, 1, 1)
		stand.Must(t, db.Model(&l).Association("Orders").Replace(&orders[1]))
		is("replace", 3, 2, 1)
		stand.Must(t, db.Model(&l).Association("Orders").Clear())
		is("clear", 3, 3, 1)
		stand.Must(t, db.Create(&label{Orders: []order{orders[2]}}).Error)
		is("create with", 3, 3, 2)
	})
}

// Options and clauses of the caller's change nothing about roots, and are heeded.
func TestRoot_beside(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	stand.OnBoth(t, models, func(t *testing.T, db *gorm.DB) {
		o := stand.Made(t, db, order{})
		l, n := line{OrderID: o.ID, Qty: 1}, note{OrderID: &o.ID, Text: "a"}
		stand.Must(t, db.Create(&l).Error)
		stand.Must(t, db.Omit("Order").Create(&n).Error)
		all := clause.Returning{}
		id := clause.Returning{Columns: []clause.Column{{Name: "id"}}}
		var lines []line
		for name, write := range map[string]func(tx *gorm.DB) error{
			"SkipHooks": func(tx *gorm.DB) error {
				return tx.Session(&gorm.Session{SkipHooks: true}).Model(&l).Update("qty", 2).Error
			},
			"UpdateColumns":          func(tx *gorm.DB) error { return tx.Model(&l).UpdateColumns(map[string]any{"qty": 3}).Error },
			"Returning of an update": func(tx *gorm.DB) error { return tx.Model(&l).Clauses(all).Update("qty", 4).Error },
			"Returning, unversioned": func(tx *gorm.DB) error { return tx.Model(&n).Omit("Order").Clauses(id).Update("text", "b").Error },
			"Returning of a create":  func(tx *gorm.DB) error { return tx.Clauses(all).Create(&line{OrderID: o.ID}).Error },
			"Returning of creates": func(tx *gorm.DB) error {
				return tx.Clauses(all).Create(&[]note{{OrderID: &o.ID}, {OrderID: &o.ID}}).Error
			},
			"Returning of a delete": func(tx *gorm.DB) error { lines = nil; return tx.Clauses(all).Where("qty = 0").Delete(&lines).Error },
			"Select":                func(tx *gorm.DB) error { return tx.Select("Qty").Create(&line{OrderID: o.ID, Qty: 9}).Error },
			"Select of the key":     func(tx *gorm.DB) error { return tx.Select("OrderID", "Qty").Create(&line{OrderID: o.ID, Qty: 0}).Error },
			"ExpectVersion": func(tx *gorm.DB) error {
				return tx.Clauses(gormlock.ExpectVersion(l.Version)).Model(&line{}).Where("id = ?", l.ID).Update("note", "x").Error
			},
			"FirstOrCreate": func(tx *gorm.DB) error { return tx.Where(line{OrderID: o.ID, Qty: 4711}).FirstOrCreate(&line{}).Error },
			"Assign": func(tx *gorm.DB) error {
				return tx.Where(line{ID: l.ID}).Assign(line{Qty: 77}).FirstOrCreate(&line{}).Error
			},
			"WithResult": func(tx *gorm.DB) error {
				_, err := gorm.G[note](tx, gorm.WithResult()).Where("id = ?", n.ID).Update(ctx, "text", "z")
				return err
			},
			"Touch": func(tx *gorm.DB) error { return gormlock.Touch(tx, &l) },
			"PreserveVersion": func(tx *gorm.DB) error {
				return tx.Clauses(gormlock.PreserveVersion()).Model(&l).Update("qty", 5).Error
			},
			"IfUnchanged": func(tx *gorm.DB) error {
				was := n
				return tx.Model(&n).Omit("Order").Clauses(gormlock.IfUnchanged(&was, "text")).Update("text", "q").Error
			},
			"Table": func(tx *gorm.DB) error {
				return tx.Table("lines").Model(&line{}).Where("lines.id = ?", l.ID).Update("qty", 6).Error
			},
			"AllowGlobalUpdate": func(tx *gorm.DB) error {
				return tx.Session(&gorm.Session{AllowGlobalUpdate: true}).Model(&line{}).Update("qty", 7).Error
			},
			"an array": func(tx *gorm.DB) error { return tx.Create(&[2]line{{OrderID: o.ID}, {OrderID: o.ID}}).Error },
			"in batches": func(tx *gorm.DB) error {
				return tx.CreateInBatches([]note{{OrderID: &o.ID}, {OrderID: &o.ID}, {OrderID: &o.ID}}, 2).Error
			},
			"FindInBatches and saves": func(tx *gorm.DB) error {
				return tx.Where("id = ?", l.ID).FindInBatches(&[]line{}, 1, func(tx *gorm.DB, _ int) error {
					return tx.Session(&gorm.Session{NewDB: true}).Model(&line{}).Where("id = ?", l.ID).Update("qty", 8).Error
				}).Error
			},
		} {
			stand.Must(t, db.First(&l, l.ID).Error)
			stand.Must(t, db.First(&n, n.ID).Error)
			was := versionOf(t, db, o.ID)
			err := db.Transaction(write)
			want := was + 1
			switch name {
			case "ExpectVersion":
				if err == nil {
					t.Error("a column that is not there")
				}
				continue
			case "Returning of a delete":
				want = was
				if len(lines) > 0 {
					want = was + 1
				}
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else {
				stand.Equal(t, name, versionOf(t, db, o.ID), want)
			}
		}
	})
}

// A savepoint that is rolled back takes the move back, whoever sees it.
func TestRoot_movesAgain(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, models, func(t *testing.T, db *gorm.DB) {
		o := stand.Made(t, db, order{})
		l := stand.Made(t, db, line{OrderID: o.ID})
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, tx.SavePoint("one").Error)
			stand.Must(t, tx.Model(&line{}).Where("id = ?", l.ID).Update("qty", 1).Error)
			stand.Must(t, tx.RollbackTo("one").Error)
			stand.Must(t, tx.Exec("SAVEPOINT two").Error)
			stand.Must(t, tx.Create(&line{OrderID: o.ID}).Error)
			stand.Must(t, tx.Exec("ROLLBACK TO SAVEPOINT two").Error)
			return tx.Delete(&l).Error
		}))
		stand.Equal(t, "version", versionOf(t, db, o.ID), 3)
	})
}

// An upsert does not take over a part that another writer stores meanwhile: the root that this one has would not move.
func TestRoot_upsertAmongWriters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ row any }{"versioned": {&line{ID: 70}}, "unversioned": {&note{ID: 70}}, "a slice": {&[]line{{ID: 70}, {ID: 71}}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, models)
			orders := []order{{}, {}}
			stand.Must(t, db.Create(&orders).Error)
			met := false
			stand.Must(t, db.Callback().Create().After("gormlock:before_write").Before("gorm:create").Register("meet", func(at *gorm.DB) {
				if table := at.Statement.Table; !met && (table == "lines" || table == "notes") {
					met = true
					stand.Must(t, db.Session(&gorm.Session{NewDB: true}).Exec("INSERT INTO lines (id, qty, order_id) VALUES (70, 1, ?)", orders[1].ID).Error)
					stand.Must(t, db.Session(&gorm.Session{NewDB: true}).Exec("INSERT INTO notes (id, text, order_id) VALUES (70, '', ?)", orders[1].ID).Error)
				}
			}))
			switch row := c.row.(type) {
			case *line:
				row.OrderID = orders[0].ID
			case *note:
				row.OrderID = &orders[0].ID
			case *[]line:
				(*row)[0].OrderID, (*row)[1].OrderID = orders[0].ID, orders[0].ID
			}
			err := db.Clauses(stand.UpdateAll).Omit("Order").Create(c.row).Error
			stand.MustStale(t, err)
			stand.Equal(t, "retryable", gormlock.IsRetryable(err), true)
			stand.Equal(t, "the first", versionOf(t, db, orders[0].ID), 1)
			stand.Must(t, db.Clauses(stand.UpdateAll).Omit("Order").Create(c.row).Error)
			stand.Equal(t, "the second", versionOf(t, db, orders[1].ID), 2)
		})
	}
}

// Hooks may write parts, name other roots and fail.
type hooked struct {
	ID      int64
	Text    string
	OrderID int64
	Order   *order `gormlock:"root"`
}

var errHook = errors.New("the hook fails")

func (h *hooked) BeforeSave(tx *gorm.DB) error {
	switch h.Text {
	case "to 2":
		tx.Statement.SetColumn("OrderID", int64(2))
	case "writes":
		return tx.Create(&hooked{OrderID: 3}).Error
	}
	return nil
}

func (h *hooked) AfterSave(*gorm.DB) error {
	if h.Text == "fails" {
		return errHook
	}
	return nil
}

func TestRoot_hooks(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, append([]any{&hooked{}}, models...), func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Create(&[]order{{}, {}, {}}).Error)
		h := stand.Made(t, db, hooked{OrderID: 1})
		stand.Equal(t, "created", versionsOf(t, db), [3]int64{2, 1, 1})
		h.Text = "to 2"
		stand.Must(t, db.Save(&h).Error)
		stand.Equal(t, "a hook has moved it", versionsOf(t, db), [3]int64{3, 2, 1})
		h.Text = "writes"
		stand.Must(t, db.Save(&h).Error)
		stand.Equal(t, "a hook has written another", versionsOf(t, db), [3]int64{3, 3, 2})
		h.Text = "fails"
		if err := db.Save(&h).Error; !errors.Is(err, errHook) {
			t.Error(err)
		}
		stand.Equal(t, "a hook has failed", versionsOf(t, db), [3]int64{3, 3, 2})
	})
}

// The move is in the statement's transaction, and is committed with it, on whatever pool.
func TestRoot_pools(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]pgtest.Option{"PrepareStmt": {pgtest.PrepareStmt()}, "simple protocol": {pgtest.SimpleProtocol()}, "QueryFields": {pgtest.Config(func(c *gorm.Config) { c.QueryFields = true })}} {
		db := stand.Versioned(t, models, opts...)
		o := stand.Made(t, db, order{})
		many := make([]line, 300)
		for i := range many {
			many[i].OrderID = o.ID
		}
		stand.Must(t, db.Create(&many).Error)
		done := db.Model(&line{}).Where("qty = 0").Update("qty", 1)
		stand.Must(t, done.Error)
		stand.Equal(t, name+": rows", done.RowsAffected, 300)
		stand.Must(t, db.Find(&many).Error)
		stand.Must(t, db.Delete(&many).Error)
		stand.Equal(t, name, versionOf(t, db, o.ID), 4)
	}
}
