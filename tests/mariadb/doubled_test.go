package mariadb_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type basket struct {
	ID      int64
	Note    string `gorm:"size:20"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

type apple struct {
	ID       int64
	BasketID int64
	Version  int64 `gorm:"not null;default:1" gormlock:"version"`
}

const (
	ofBaskets   = "FROM baskets"
	withApples  = "JOIN apples ON apples.basket_id = baskets.id"
	ofVersion   = 2 // of the basket
	anothers    = 9 // version, of the apple
	twoColumns  = "returns two columns"
	onceWritten = "written once"
)

// everywhere runs test on each database, with a basket that has an apple.
func everywhere(t *testing.T, test func(t *testing.T, db *gorm.DB)) {
	t.Helper()
	models := []any{&basket{}, &apple{}}
	filled := func(t *testing.T, db *gorm.DB) {
		t.Helper()
		stand.Must(t, db.Create(&basket{ID: 1}).Error)
		stand.Must(t, db.Model(&basket{ID: 1, Version: 1}).Update("note", onceWritten).Error)
		stand.Must(t, db.Create(&apple{ID: 7, BasketID: 1, Version: anothers}).Error)
		test(t, db)
	}
	t.Run("mariadb", func(t *testing.T) { t.Parallel(); filled(t, mariaserver.Open(t, models)) })
	stand.OnBoth(t, models, filled)
}

// readers read the basket that a list of columns gives, in each way that GORM has.
var readers = map[string]func(db *gorm.DB, list, join string) (basket, error){
	"Find": func(db *gorm.DB, list, join string) (b basket, err error) {
		return b, db.Select(list).Joins(join).Find(&b).Error
	},
	"First": func(db *gorm.DB, list, join string) (b basket, err error) {
		return b, db.Select(list).Joins(join).First(&b).Error
	},
	"Find, a slice": func(db *gorm.DB, list, join string) (basket, error) {
		var all []basket
		err := db.Select(list).Joins(join).Find(&all).Error
		return all[0], err
	},
	"Find, pointers": func(db *gorm.DB, list, join string) (basket, error) {
		var all []*basket
		err := db.Select(list).Joins(join).Find(&all).Error
		return *all[0], err
	},
	"FindInBatches": func(db *gorm.DB, list, join string) (basket, error) {
		var all []basket
		err := db.Select(list).Joins(join).FindInBatches(&all, 2, func(*gorm.DB, int) error { return nil }).Error
		return all[0], err
	},
	"prepared": func(db *gorm.DB, list, join string) (b basket, err error) {
		return b, db.Session(&gorm.Session{PrepareStmt: true}).Select(list).Joins(join).Take(&b).Error
	},
	"Table": func(db *gorm.DB, list, join string) (b basket, err error) {
		return b, db.Table("baskets").Select(list).Joins(join).Take(&b).Error
	},
	"Raw, Find": func(db *gorm.DB, list, join string) (b basket, err error) {
		return b, db.Raw("SELECT " + list + " " + ofBaskets + " " + join).Find(&b).Error
	},
	"generics": func(db *gorm.DB, list, join string) (basket, error) {
		all, err := gorm.G[basket](db).Raw("SELECT " + list + " " + ofBaskets + " " + join).Find(context.Background())
		return all[0], err
	},
	"Scan": func(db *gorm.DB, list, join string) (b basket, err error) {
		return b, db.Model(&basket{}).Select(list).Joins(join).Scan(&b).Error
	},
	"Scan, a slice": func(db *gorm.DB, list, join string) (basket, error) {
		var all []basket
		err := db.Model(&basket{}).Select(list).Joins(join).Scan(&all).Error
		return all[0], err
	},
	"Raw, Scan": func(db *gorm.DB, list, join string) (b basket, err error) {
		return b, db.Raw("SELECT " + list + " " + ofBaskets + " " + join).Scan(&b).Error
	},
}

// through calls test for each of them, outside of transactions and in one.
func through(t *testing.T, db *gorm.DB, test func(where string, read func(list, join string) (basket, error))) {
	t.Helper()
	for name, reader := range readers {
		test(name, func(list, join string) (basket, error) { return reader(db, list, join) })
		stand.InTx(t, db, func(tx *gorm.DB) {
			test(name+" in a transaction", func(list, join string) (basket, error) { return reader(tx, list, join) })
		})
	}
}

// MariaDB takes no sub-query that returns two columns of one name.
func TestDoubledColumns(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db *gorm.DB) {
		through(t, db, func(where string, read func(list, join string) (basket, error)) {
			for _, query := range [][2]string{
				{"*, id", ""}, {"*, version", ""}, {"baskets.*, baskets.id", withApples}, {"baskets.*, 1 AS total", withApples},
				{"baskets.*, apples.version AS of_apple", withApples},
			} {
				if b, err := read(query[0], query[1]); err != nil || b.ID != 1 || b.Version != ofVersion || b.Note != onceWritten {
					t.Errorf("%s: %s is %+v, %v", where, query[0], b, err)
				}
			}
			for _, list := range []string{"baskets.*, apples.*", "baskets.*, apples.version", "baskets.*, 9 AS version", "baskets.id, baskets.version, apples.version"} {
				b, err := read(list, withApples)
				if err == nil || !strings.Contains(err.Error(), twoColumns) || b.Version > 0 {
					t.Errorf("%s: %s is %+v, %v", where, list, b, err)
				}
			}
		})
		var views []struct{ Note string }
		var maps []map[string]any
		for name, err := range map[string]error{
			"a view": db.Table("baskets").Select("*").Joins(withApples).Find(&views).Error,
			"Raw":    db.Raw("SELECT * FROM baskets " + withApples).Find(&views).Error,
			"a map":  db.Table("baskets").Select("*, id").Find(&maps).Error,
		} {
			if err != nil {
				t.Errorf("%s is refused: %v", name, err)
			}
		}
	})
}

// GORM finds a field by its name in Go too, and by what the naming strategy makes its column of.
func TestDoubledColumns_inOtherSpellings(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db *gorm.DB) {
		field := db.Statement.Quote("Version")
		refused := []string{
			"baskets.*, apples.version AS " + field, "baskets.*, (apples.version) AS " + field, "baskets.*, max(apples.version) OVER () AS " + field,
			"apples.version AS " + field + ", baskets.*", "baskets.id, baskets.version, apples.version AS " + field,
			"baskets.version AS " + field + ", baskets.id, apples.version", "baskets.*, apples.id AS " + db.Statement.Quote("ID"),
			"baskets.*, 'x' AS " + db.Statement.Quote("Note"),
		}
		allowed := []string{"baskets.*, baskets.Version", "baskets.id, baskets.note, baskets.version AS " + field}
		if db.Name() == "postgres" {
			refused = append(refused, "baskets.id, baskets.version, apples.version::int", "baskets.id, baskets.version, (apples.version)", "baskets.id, baskets.version, version(apples)")
		} else { // these return a name as it is written
			refused = append(refused, "baskets.*, apples.Version", "baskets.*, apples.version AS VERSION", "baskets.id, baskets.version, apples.VERSION")
		}
		through(t, db, func(where string, read func(list, join string) (basket, error)) {
			for _, list := range refused {
				b, err := read(list, withApples)
				if err == nil || !strings.Contains(err.Error(), twoColumns) || b.Version > 0 {
					t.Errorf("%s: %s is %+v, %v", where, list, b, err)
				}
			}
			for _, list := range allowed {
				if b, err := read(list, withApples); err != nil || b.ID != 1 || b.Version != ofVersion || b.Note != onceWritten {
					t.Errorf("%s: %s is %+v, %v", where, list, b, err)
				}
			}
		})
	})
}

type basketForm struct {
	ID  int64
	Ver int64 `gorm:"column:version"`
}

// What is no struct of the model can carry its version too.
func TestDoubledColumns_inOtherSpellings_intoForms(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db *gorm.DB) {
		named := func(name string) *gorm.DB {
			return db.Model(&basket{}).Select("baskets.id, baskets.version, apples.version AS " + db.Statement.Quote(name)).Joins(withApples)
		}
		twice := db.Model(&basket{}).Select("baskets.version AS " + db.Statement.Quote("Version") + ", apples.version AS " + db.Statement.Quote("Version")).Joins(withApples).Session(&gorm.Session{})
		var forms [4][]basketForm
		var one basketForm
		var maps [4]map[string]any
		var anything any = &basketForm{}
		for name, err := range map[string]error{
			"Find":           named("Ver").Find(&forms[0]).Error,
			"Scan":           named("Ver").Scan(&forms[1]).Error,
			"Scan of one":    named("Ver").Scan(&one).Error,
			"an interface":   named("Ver").Take(anything).Error,
			"its address":    named("Ver").Scan(&anything).Error,
			"a map":          twice.Take(&maps[0]).Error,
			"a map, Scan":    twice.Scan(&maps[1]).Error,
			"MapColumns":     named("n").MapColumns(map[string]string{"n": "version"}).Find(&forms[2]).Error,
			"MapColumns too": named("n").MapColumns(map[string]string{"n": "version"}).Scan(&forms[3]).Error,
		} {
			if err == nil || !strings.Contains(err.Error(), twoColumns) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, form := range append(slices.Concat(forms[:]...), one) {
			if form.Ver > 0 {
				t.Errorf("a form has the version of another row: %+v", forms)
			}
		}
		for _, row := range maps[:2] {
			if version, is := row["Version"].(int64); !is || version > 0 {
				t.Errorf("a map has the version of another row: %v", row)
			}
		}
		var totals []struct {
			ID    int64
			Total int64
		}
		stand.Must(t, named("Total").Find(&totals).Error)
		stand.Must(t, named("Total").Scan(&totals).Error)
		stand.Equal(t, "total", totals[0].Total, anothers)
		stand.Must(t, named("Version").Take(&maps[2]).Error) // an update with both is an error
		if err := db.Model(&basket{ID: 1}).Updates(maps[2]).Error; err == nil {
			t.Error("a map with two versions is written")
		}
	})
}

type crate struct {
	ID       int64
	BasketID int64
	Basket   *basket
	Version  int64 `gorm:"not null;default:1" gormlock:"version"`
}

// Joins reads a struct beside the struct.
func TestDoubledColumns_ofWhatIsJoined(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.AutoMigrate(&crate{}))
		stand.Must(t, db.Create(&crate{ID: 3, BasketID: 1}).Error)
		for _, name := range []string{"Basket__version", "Basket__Version"} {
			var c crate
			err := db.Select("crates.*", "9 AS "+db.Statement.Quote(name)).Joins("Basket").Take(&c).Error
			if err == nil || !strings.Contains(err.Error(), twoColumns) || c.Version > 0 || c.Basket != nil && c.Basket.Version > 0 {
				t.Errorf("%s: %+v, %+v, %v", name, c, c.Basket, err)
			}
		}
		var c crate
		stand.Must(t, db.Joins("Basket").Take(&c).Error)
		stand.Equal(t, "joined", c.Basket.Version, ofVersion)
	})
}

// A query can fail when it has read some rows.
func TestDoubledColumns_ofAQueryThatFails(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Create(&apple{ID: 8, BasketID: 1, Version: anothers}).Error)
		list := "baskets.*, apples.version, CASE WHEN apples.id = 8 THEN 'eight' ELSE '7' END AS id"
		var found []basket
		if err := db.Select(list).Joins(withApples).Order("apples.id").Find(&found).Error; err == nil {
			t.Fatal("text was read as a number")
		}
		for _, b := range found {
			if b.Version > 0 {
				t.Errorf("it has a version: %+v", b)
			}
		}
	})
}

// A plugin that answers a query itself tells nobody which columns it would have returned.
func TestDoubledColumns_ofAQueryThatAnotherAnswers(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Callback().Query().Replace("gorm:query", func(db *gorm.DB) {
			if all, is := db.Statement.Dest.(*[]basket); is {
				*all, db.RowsAffected = []basket{{ID: 1, Version: anothers}}, 1
			}
		}))
		for text, version := range map[string]int64{
			"SELECT * FROM baskets " + withApples:          stand.Unread,
			"SELECT baskets.* FROM baskets " + withApples:  anothers,
			"SELECT id, version FROM baskets WHERE id = 1": anothers,
		} {
			var all []basket
			stand.Must(t, db.Raw(text).Find(&all).Error)
			if version == stand.Unread {
				stand.Equal(t, text, all[0].Version, version)
			}
		}
	})
}
