package belongs_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	client struct {
		TenantID int64 `gorm:"primaryKey;autoIncrement:false"`
		ID       int64 `gorm:"primaryKey;autoIncrement:false"`
		Version  int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	shopOf struct {
		TenantID int64 `gorm:"primaryKey;autoIncrement:false"`
		ID       int64 `gorm:"primaryKey;autoIncrement:false"`
		Version  int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	purchase struct {
		ID       int64
		A        int64
		TenantID int64
		ClientID int64
		Client   *client `gorm:"foreignKey:TenantID,ClientID;references:TenantID,ID"`
		ShopID   int64
		Shop     *shopOf `gorm:"foreignKey:TenantID,ShopID;references:TenantID,ID"`
		Version  int64   `gorm:"not null;default:1" gormlock:"version"`
	}
)

// An association that is assigned does not move another one that shares a column with it, and that the struct holds.
func TestSharedColumn_movesNoOther(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	db.DisableForeignKeyConstraintWhenMigrating = true
	stand.Must(t, db.AutoMigrate(&client{}, &shopOf{}, &purchase{}))
	stand.Must(t, db.Exec(`INSERT INTO clients VALUES (5, 1, 1), (5, 2, 1), (9, 1, 1); INSERT INTO shop_ofs VALUES (5, 1, 1), (9, 1, 1);
		INSERT INTO purchases VALUES (1, 0, 5, 1, 1, 1)`).Error)
	writes := map[string]func(p *purchase) error{
		"Save":    func(p *purchase) error { return db.Save(p).Error },
		"slice":   func(p *purchase) error { return db.Save([]*purchase{p}).Error },
		"Updates": func(p *purchase) error { return db.Updates(p).Error },
		"Update":  func(p *purchase) error { return db.Model(p).Update("a", 7).Error },
		"full":    func(p *purchase) error { return db.Session(&gorm.Session{FullSaveAssociations: true}).Save(p).Error },
		"upsert":  func(p *purchase) error { return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(p).Error },
	}
	for name, write := range writes {
		var p purchase
		stand.Must(t, db.Preload(clause.Associations).First(&p).Error)
		p.Client = &client{TenantID: 9, ID: 1, Version: 1}
		if err := write(&p); err == nil || !strings.Contains(err.Error(), "Shop holds") {
			t.Errorf("%s: %v", name, err)
		}
		stand.Equal(t, name, db.Find(&[]purchase{}, "tenant_id = 5").RowsAffected, 1)
	}
	for name, write := range writes {
		var p purchase
		stand.Must(t, db.Preload(clause.Associations).First(&p).Error)
		p.Client = &client{TenantID: 5, ID: 3 - p.ClientID, Version: 1}
		stand.Must(t, write(&p))
		stand.Equal(t, name, stand.Row[purchase](t, db, 1).ClientID, p.Client.ID)
	}
	var p purchase
	stand.Must(t, db.Preload(clause.Associations).First(&p).Error)
	p.Client, p.Shop = &client{TenantID: 9, ID: 1, Version: 1}, &shopOf{TenantID: 9, ID: 1, Version: 1}
	stand.Must(t, db.Save(&p).Error)
	stand.Equal(t, "tenant", stand.Row[purchase](t, db, 1).TenantID, 9)
}
