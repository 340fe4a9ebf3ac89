package roots_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// shop has a key of two columns, and items belong to it.
type shop struct {
	Country string `gorm:"primaryKey;size:40"`
	Number  int64  `gorm:"primaryKey;autoIncrement:false"`
	Name    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type item struct {
	ID          int64
	Name        string
	ShopCountry string `gorm:"size:40"`
	ShopNumber  int64
	Shop        *shop `gorm:"foreignKey:ShopCountry,ShopNumber;references:Country,Number" gormlock:"root"`
}

func TestRoot_compositeKeys(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, []any{&shop{}, &item{}}, func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Create([]shop{{Country: "fr", Number: 1}, {Country: "fr", Number: 2}, {Country: "de", Number: 1}}).Error)
		versions := func() (all []int64) {
			stand.Must(t, db.Model(&shop{}).Order("country, number").Pluck("version", &all).Error)
			return all
		}
		is := func(want ...int64) {
			t.Helper()
			got := versions()
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("versions %v, want %v", got, want)
					return
				}
			}
		}
		i := stand.Made(t, db, item{ShopCountry: "fr", ShopNumber: 1})
		is(1, 2, 1)
		stand.Must(t, db.Model(&i).Update("shop_number", 2).Error)
		is(1, 3, 2)
		stand.Must(t, db.Model(&item{}).Where("true").Updates(map[string]any{"shop_country": "de", "ShopNumber": 1}).Error)
		is(2, 3, 3)
		stand.Must(t, db.Model(&item{}).Where("true").Update("shop_country", "fr").Error)
		is(3, 4, 3)
		stand.Must(t, db.Delete(&item{}, i.ID).Error)
		is(3, 5, 3)
	})
}

// node belongs to another one: roots of roots, without end where they go in a circle.
type node struct {
	ID       int64
	Name     string
	ParentID *int64
	Parent   *node `gormlock:"root"`
	Version  int64 `gorm:"not null;default:1" gormlock:"version"`
}

func TestRoot_trees(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, []any{&node{}}, func(t *testing.T, db *gorm.DB) {
		top := stand.Made(t, db, node{})
		middle := stand.Made(t, db, node{ParentID: &top.ID})
		leaf := stand.Made(t, db, node{ParentID: &middle.ID})
		stand.Equal(t, "top", stand.Row[node](t, db, top.ID).Version, 3)
		stand.Equal(t, "middle", stand.Row[node](t, db, middle.ID).Version, 2)
		stand.Must(t, db.Model(&top).Clauses(gormlock.IgnoreVersion()).UpdateColumn("parent_id", leaf.ID).Error)
		stand.Must(t, db.First(&leaf, leaf.ID).Error)
		stand.Must(t, db.Model(&leaf).Update("name", "x").Error)
	})
}

// Once for each transaction, and again where a savepoint has taken it back.
func TestRoot_savepoints(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, models, func(t *testing.T, db *gorm.DB) {
		o := stand.Made(t, db, order{})
		back := errors.New("back")
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Transaction(func(tx *gorm.DB) error {
				stand.Must(t, tx.Create(&line{OrderID: o.ID, Order: &o}).Error)
				return back
			}); !errors.Is(err, back) {
				t.Error(err)
			}
			stand.Equal(t, "after the savepoint", o.Version, 1)
			return errors.Join(tx.Create(&line{OrderID: o.ID, Order: &o}).Error, tx.Create(&line{OrderID: o.ID, Order: &o}).Error)
		}))
		stand.Equal(t, "once", o.Version, 2)
		stand.Equal(t, "once", versionOf(t, db, o.ID), 2)
	})
}

func TestRoot_withPlainTransactions(t *testing.T) {
	t.Parallel()
	plugin := gormlock.New(gormlock.PlainTransactions())
	t.Cleanup(func() { _ = plugin.Close() })
	db := pgtest.Open(t, pgtest.Plugin(plugin), pgtest.Schema())
	stand.Must(t, db.AutoMigrate(models...))
	o := stand.Made(t, db, order{})
	stand.Must(t, db.Create(&line{OrderID: o.ID}).Error)
	stand.Equal(t, "version", versionOf(t, db, o.ID), 2)
	stand.Must(t, gormlock.Transaction(db, func(tx *gorm.DB) error {
		return errors.Join(tx.Create(&line{OrderID: o.ID}).Error, tx.Create(&line{OrderID: o.ID}).Error)
	}))
	stand.Equal(t, "version", versionOf(t, db, o.ID), 3)
}

// A claim of parts is refused: it does not say whose they are.
func TestRoot_claims(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, models)
	if _, err := gormlock.Claim[line](db, 1, map[string]any{"qty": 1}); err == nil || !strings.Contains(err.Error(), "root") {
		t.Error(err)
	}
}

type (
	plainRoot struct{ ID int64 }
	xminRoot  struct {
		ID      int64
		Version uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
	}
	onColumn struct {
		ID      int64
		OrderID int64 `gormlock:"root"`
	}
	onChildren struct {
		ID    int64
		Lines []line `gorm:"foreignKey:OrderID" gormlock:"root"`
	}
	ofPlain struct {
		ID     int64
		RootID int64
		Root   *plainRoot `gormlock:"root"`
	}
	ofXmin struct {
		ID     int64
		RootID int64
		Root   *xminRoot `gormlock:"root"`
	}
	withMore struct {
		ID      int64
		OrderID int64
		Order   *order `gormlock:"root,touch"`
	}
	misspelled struct {
		ID      int64
		OrderID int64
		Order   *order `gormlock:"roots"`
	}
)

// Tags in wrong places are errors on first use, and in Check.
func TestRoot_wrongTags(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, models)
	for name, c := range map[string]struct {
		model any
		says  string
	}{
		"a column":    {&onColumn{}, "not for a column"},
		"children":    {&onChildren{}, "is for a belongs-to"},
		"no version":  {&ofPlain{}, "plainRoot has no version field"},
		"xmin":        {&ofXmin{}, "xminRoot has the version xmin"},
		"more words":  {&withMore{}, "has no options"},
		"other words": {&misspelled{}, "unknown word \"roots\""},
	} {
		for what, err := range map[string]error{"Check": gormlock.Check(db, c.model), "a read": db.Find(c.model).Error, "a write": db.Create(c.model).Error} {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
	stand.Must(t, gormlock.Check(db, &line{}, &note{}, &order{}))
}
