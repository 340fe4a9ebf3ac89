package mariadb_test

import (
	"context"
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
			"SELECT * FROM baskets " + withApples:          0,
			"SELECT baskets.* FROM baskets " + withApples:  anothers,
			"SELECT id, version FROM baskets WHERE id = 1": anothers,
		} {
			var all []basket
			stand.Must(t, db.Raw(text).Find(&all).Error)
			if version == 0 {
				stand.Equal(t, text, all[0].Version, 0)
			}
		}
	})
}
