package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	coin struct {
		ID      int64
		Code    string  `gorm:"unique"`
		Short   *string `gorm:"unique"`
		Faces   []face
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	face struct {
		ID      int64
		CoinID  int64
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	price struct {
		ID       int64
		CoinCode string
		Coin     *coin   `gorm:"foreignKey:CoinCode;references:Code"`
		Others   []*coin `gorm:"many2many:price_coins;references:Code"`
		Version  int64   `gorm:"not null;default:1" gormlock:"version"`
	}
	// vault refers to a coin by its key too, and to one that its price may hold.
	vault struct {
		ID      int64
		CoinID  int64
		Coin    *coin
		PriceID int64
		Price   *price
	}
)

// Who refers to a row by a unique column, and not by the key, refers to the one that is there.
func TestCreate_thatRefersByAUniqueColumn(t *testing.T) {
	t.Parallel()
	unchecked := func(c *gorm.Config) { c.DisableForeignKeyConstraintWhenMigrating = true }
	for name, db := range map[string]*gorm.DB{"PostgreSQL": stand.Open(t, pgtest.Config(unchecked)), "SQLite": stand.OnSQLite(t, nil, unchecked)} {
		t.Run(name, func(t *testing.T) {
			stand.Must(t, db.AutoMigrate(&coin{}, &face{}, &price{}, &vault{}))
			short := "a"
			stand.Must(t, db.Create(&coin{Code: "A", Short: &short}).Error)
			saved, appended := price{CoinCode: "A"}, price{CoinCode: "A"}
			stand.Must(t, db.Create(&saved).Error)
			stand.Must(t, db.Create(&appended).Error)
			saved.Coin = &coin{Code: "A"}
			for name, do := range map[string]func() error{
				"without its key": func() error { return db.Create(&price{Coin: &coin{Code: "A"}}).Error },
				"by another key":  func() error { return db.Create(&price{Coin: &coin{ID: 50, Code: "A"}}).Error },
				"a slice":         func() error { return db.Create(&[]price{{Coin: &coin{Code: "A"}}, {Coin: &coin{Code: "N"}}}).Error },
				"linked":          func() error { return db.Create(&price{Others: []*coin{{Code: "A"}, {ID: 60, Code: "A"}}}).Error },
				"two steps": func() error {
					return db.Create(&vault{Price: &price{Coin: &coin{Code: "A"}}, Coin: &coin{Code: "V"}}).Error
				},
				"saved":    func() error { return db.Save(&saved).Error },
				"appended": func() error { return db.Model(&appended).Association("Coin").Append(&coin{Code: "A"}) },
			} {
				if err := do(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			var n int64
			stand.Must(t, db.Model(&price{}).Where("coin_code NOT IN ('A','N','')").Count(&n).Error)
			stand.Equal(t, "prices of no coin", n, 0)
			stand.Must(t, db.Model(&coin{}).Where("code = 'A'").Count(&n).Error)
			stand.Equal(t, "coins A", n, 1)
			stand.Must(t, db.Table("price_coins").Count(&n).Error)
			stand.Equal(t, "links", n, 1)
		})
		t.Run(name+": to nothing", func(t *testing.T) {
			short := "a"
			both := &coin{Code: "A"}
			for name, row := range map[string]any{
				"of another unique value": &price{Coin: &coin{Code: "other", Short: &short}},
				"linked so":               &price{Others: []*coin{{Code: "other", Short: &short}}},
				"with children":           &price{Coin: &coin{Code: "A", Faces: []face{{}}}},
				"by the key elsewhere":    &vault{Coin: both, Price: &price{Coin: both}},
			} {
				if err := db.Create(row).Error; err == nil || !strings.Contains(err.Error(), "read that row") {
					t.Errorf("%s: %v", name, err)
				}
			}
			stand.Equal(t, "faces", db.Find(&[]face{}).RowsAffected, 0)
		})
	}
}

// Of structs without a key, the row that was stored is that of the struct which was.
func TestCreate_namesTheElementThatIsThere(t *testing.T) {
	t.Parallel()
	models := []any{&coin{}, &face{}, &price{}, &chamber{}, &attic{}}
	for name, db := range map[string]*gorm.DB{"PostgreSQL": stand.Versioned(t, models), "SQLite": stand.OnSQLite(t, models)} {
		stand.Must(t, db.Create(&chamber{Name: "old"}).Error)
		err := db.Create(&attic{Rooms: []chamber{{Name: "old"}, {Name: "new"}}}).Error
		if err == nil || !strings.Contains(err.Error(), "element 0 of 2") {
			t.Errorf("%s: %v", name, err)
		}
		stand.Must(t, db.Create(&coin{Code: "old"}).Error)
		prices := []price{{Coin: &coin{Code: "old"}}, {Coin: &coin{Code: "new"}}}
		stand.Must(t, db.Create(&prices).Error)
		stand.Equal(t, name+": the new coin", stand.Row[coin](t, db, prices[1].Coin.ID).Code, "new")
		prices[1].Coin.Short = &prices[1].CoinCode
		stand.Must(t, db.Save(prices[1].Coin).Error)
		if old := prices[0].Coin; old.ID != 0 || old.Version != 0 {
			t.Errorf("%s: the old coin was not read: %+v", name, old)
		}
	}
}
