package belongs_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	basket struct {
		TenantID int64      `gorm:"primaryKey;autoIncrement:false"`
		ID       int64      `gorm:"primaryKey;autoIncrement:false"`
		Lines    []*ordered `gorm:"foreignKey:TenantID,BasketID;references:TenantID,ID"`
		Gift     *ordered   `gorm:"foreignKey:TenantID,GiftOf;references:TenantID,ID"`
		Version  int64      `gorm:"not null;default:1" gormlock:"version"`
	}
	owningTenant struct {
		ID      int64
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	// ordered has a tenant, which is a part of three foreign keys, and a foreign key of its own.
	ordered struct {
		ID       int64
		A        int64
		TenantID *int64
		Tenant   *owningTenant
		BasketID *int64
		Basket   *basket `gorm:"foreignKey:TenantID,BasketID;references:TenantID,ID"`
		GiftOf   *int64
		ShopID   *int64
		Shop     *shopOf `gorm:"foreignKey:TenantID,ShopID;references:TenantID,ID"`
		Version  int64   `gorm:"not null;default:1" gormlock:"version"`
	}
	// store gets its key from the server, and its tenant from the context.
	store struct {
		TenantID int64 `gorm:"primaryKey;autoIncrement:false"`
		ID       int64 `gorm:"primaryKey;autoIncrement"`
		Version  int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	hall struct {
		TenantID int64        `gorm:"primaryKey;autoIncrement:false"`
		ID       int64        `gorm:"primaryKey;autoIncrement:false"`
		Shelves  []*hallShelf `gorm:"foreignKey:TenantID,HallID;references:TenantID,ID"`
		Version  int64        `gorm:"not null;default:1" gormlock:"version"`
	}
	// hallShelf does not name its hall by an association.
	hallShelf struct {
		ID       int64
		TenantID int64
		HallID   int64
		StoreID  int64
		Store    *store `gorm:"foreignKey:TenantID,StoreID;references:TenantID,ID"`
		Version  int64  `gorm:"not null;default:1" gormlock:"version"`
	}
	// bill names its client twice by one column.
	bill struct {
		ID       int64
		TenantID int64
		Tenant   *owningTenant
		Payer    *owningTenant `gorm:"foreignKey:TenantID"`
		Fence    int64         `gormlock:"fence"`
	}
)

var crossedModels = []any{&owningTenant{}, &client{}, &shopOf{}, &purchase{}, &basket{}, &ordered{}, &bill{}, &store{}, &hall{}, &hallShelf{}}

// crossed opens a database with the tenants 5 and 9, which have all rows with the number 1.
func crossed(t *testing.T) *gorm.DB {
	db := stand.Fenced(t, crossedModels, pgtest.Config(func(c *gorm.Config) { c.DisableForeignKeyConstraintWhenMigrating = true }))
	stand.Must(t, db.Exec(`INSERT INTO owning_tenants VALUES (5, 1), (9, 1); INSERT INTO clients VALUES (0, 1, 1), (5, 1, 1), (9, 1, 1);
		INSERT INTO shop_ofs VALUES (0, 1, 1), (5, 1, 1), (9, 1, 1); INSERT INTO baskets VALUES (5, 1, 1), (9, 1, 1);
		INSERT INTO purchases (id, a, tenant_id, client_id, shop_id, version) VALUES (1, 0, 5, 1, 1, 1);
		INSERT INTO ordereds (id, a, tenant_id, basket_id, shop_id, version) VALUES (1, 0, 5, 1, 1, 1);
		SELECT setval('purchases_id_seq', 10), setval('ordereds_id_seq', 10)`).Error)
	return stand.With(db, stand.Issue(t, db, "bill", 1)).Session(&gorm.Session{})
}

// rowsOf are all rows of a table.
func rowsOf(t *testing.T, db *gorm.DB, table string) (all string) {
	stand.Must(t, db.Raw("SELECT COALESCE(string_agg(r::text, ' ' ORDER BY r.id), '') FROM "+table+" r").Scan(&all).Error)
	return all
}

// inTenantOf reads the row with the number 1 of a tenant.
func inTenantOf[T any](t *testing.T, db *gorm.DB, tenant int64) *T {
	row := new(T)
	stand.Must(t, db.First(row, "tenant_id = ? AND id = 1", tenant).Error)
	return row
}

func full(db *gorm.DB) *gorm.DB { return db.Session(&gorm.Session{FullSaveAssociations: true}) }

// creates are the ways to insert a purchase.
func creates(db *gorm.DB) map[string]func(p *purchase) error {
	nothing := clause.OnConflict{DoNothing: true}
	a := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"a"})}
	return map[string]func(p *purchase) error{
		"Create":          func(p *purchase) error { return db.Create(p).Error },
		"slice":           func(p *purchase) error { return db.Create([]*purchase{{A: 1}, p}).Error },
		"batches":         func(p *purchase) error { return db.CreateInBatches([]*purchase{p}, 1).Error },
		"Save":            func(p *purchase) error { return db.Save(p).Error },
		"Save, slice":     func(p *purchase) error { return db.Save([]*purchase{p}).Error },
		"Save with a key": func(p *purchase) error { p.ID = 7; return db.Save(p).Error },
		"full":            func(p *purchase) error { return full(db).Create(p).Error },
		"do nothing":      func(p *purchase) error { return db.Clauses(nothing).Create(p).Error },
		"upsert of a":     func(p *purchase) error { p.ID = 7; return db.Clauses(a).Create(p).Error },
		"upsert": func(p *purchase) error {
			p.ID = 7
			return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(p).Error
		},
		"transaction": func(p *purchase) error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Create(p).Error })
		},
	}
}

// A new row does not refer to another row than its struct holds, because the last one of two associations sets a column of both. The struct keeps
// its foreign keys, so it can be stored without one of the two.
func TestSharedColumn_ofANewRow(t *testing.T) {
	t.Parallel()
	db := crossed(t)
	for name, create := range creates(db) {
		for _, tenants := range [][2]int64{{9, 5}, {5, 9}, {0, 5}, {5, 0}} {
			before := rowsOf(t, db, "purchases")
			p := &purchase{Client: inTenantOf[client](t, db, tenants[0]), Shop: inTenantOf[shopOf](t, db, tenants[1])}
			if err := create(p); err == nil || !strings.Contains(err.Error(), "holds") {
				t.Errorf("%s %v: %v", name, tenants, err)
			}
			stand.Equal(t, name, rowsOf(t, db, "purchases"), before)
			stand.Equal(t, name+": the struct's keys", [3]int64{p.TenantID, p.ClientID, p.ShopID}, [3]int64{})
			p.Shop, p.ID = nil, 0
			stand.Must(t, db.Create(p).Error)
			stand.Equal(t, name+": tenant", stand.Row[purchase](t, db, p.ID).TenantID, tenants[0])
		}
		p := &purchase{Client: inTenantOf[client](t, db, 9), Shop: inTenantOf[shopOf](t, db, 9)}
		stand.Must(t, create(p))
		stand.Must(t, db.Delete(p).Error)
	}
}

// A foreign key that a struct names without holding the row does not become half of another one.
func TestSharedColumn_ofAForeignKey(t *testing.T) {
	t.Parallel()
	db := crossed(t)
	nine := func() *client { return inTenantOf[client](t, db, 9) }
	for name, create := range creates(db) {
		before := rowsOf(t, db, "purchases")
		p := &purchase{TenantID: 5, ShopID: 1, Client: nine()}
		if err := create(p); err == nil || !strings.Contains(err.Error(), "name") {
			t.Errorf("%s: %v", name, err)
		}
		stand.Equal(t, name, rowsOf(t, db, "purchases"), before)
		stand.Equal(t, name+": the struct's tenant", p.TenantID, 5)
		for _, p := range []*purchase{{ShopID: 1}, {TenantID: 9, ShopID: 1}} {
			p.Client = nine()
			stand.Must(t, create(p))
			stand.Equal(t, name, stand.Row[purchase](t, db, p.ID).TenantID, 9)
			stand.Must(t, db.Delete(p).Error)
		}
	}
	for name, write := range map[string]func(p *purchase) error{
		"Save":    func(p *purchase) error { return db.Save(p).Error },
		"slice":   func(p *purchase) error { return db.Save([]*purchase{p}).Error },
		"Updates": func(p *purchase) error { return db.Updates(p).Error },
		"Update":  func(p *purchase) error { return db.Model(p).Update("a", 7).Error },
		"full":    func(p *purchase) error { return full(db).Save(p).Error },
		"Append": func(p *purchase) error {
			c := p.Client
			p.Client = nil
			return db.Model(p).Association("Client").Append(c)
		},
		"transaction": func(p *purchase) error { return db.Transaction(func(tx *gorm.DB) error { return tx.Save(p).Error }) },
	} {
		p := stand.Row[purchase](t, db, 1)
		p.Client = nine()
		if err := write(&p); err == nil || !strings.Contains(err.Error(), "Shop") {
			t.Errorf("%s: %v", name, err)
		}
		stand.Equal(t, name, stand.Row[purchase](t, db, 1).TenantID, 5)
	}
	p := stand.Row[purchase](t, db, 1)
	p.Client, p.TenantID = nine(), 9 // the caller says so
	stand.Must(t, db.Save(&p).Error)
	stand.Equal(t, "tenant", stand.Row[purchase](t, db, 1).TenantID, 9)
	stand.Must(t, db.Exec("UPDATE purchases SET tenant_id = 5").Error)
	p = stand.Row[purchase](t, db, 1)
	p.Client = nine()
	stand.Must(t, db.Model(&p).Updates(map[string]any{"tenant_id": 9, "client_id": 1}).Error) // the caller names it
	stand.Equal(t, "tenant", stand.Row[purchase](t, db, 1).TenantID, 9)
}

// Two associations by one column are one row.
func TestSharedColumn_ofTwoNames(t *testing.T) {
	t.Parallel()
	db := crossed(t)
	b := bill{Tenant: &owningTenant{ID: 5, Version: 1}, Payer: &owningTenant{ID: 9, Version: 1}}
	if err := db.Create(&b).Error; err == nil || !strings.Contains(err.Error(), "bill.Tenant holds") {
		t.Errorf("Create: %v", err)
	}
	b.Payer.ID = 5
	stand.Must(t, db.Create(&b).Error)
	b.Payer.ID = 9
	for name, write := range map[string]func() error{
		"Save":    func() error { return db.Save(&b).Error },
		"Updates": func() error { return db.Updates(&b).Error },
	} {
		if err := write(); err == nil || !strings.Contains(err.Error(), "bill.Tenant holds") {
			t.Errorf("%s: %v", name, err)
		}
		stand.Equal(t, name, stand.Row[bill](t, db, b.ID).TenantID, 5)
	}
}

// Taking one association away does not take another one away that has a column in common with it.
func TestSharedColumn_ofWhatIsTakenAway(t *testing.T) {
	t.Parallel()
	db := crossed(t)
	basketOf := func() *basket {
		b := &basket{}
		stand.Must(t, db.Preload("Lines").First(b, "tenant_id = 5 AND id = 1").Error)
		return b
	}
	for name, write := range map[string]func(tx *gorm.DB, l *ordered) error{
		"Clear":        func(tx *gorm.DB, l *ordered) error { return tx.Model(l).Association("Basket").Clear() },
		"Clear, slice": func(tx *gorm.DB, l *ordered) error { return tx.Model([]*ordered{l}).Association("Basket").Clear() },
		"Replace":      func(tx *gorm.DB, l *ordered) error { return tx.Model(l).Association("Basket").Replace() },
		"Delete":       func(tx *gorm.DB, l *ordered) error { return tx.Model(l).Association("Basket").Delete(l.Basket) },
		"Unscoped, Delete": func(tx *gorm.DB, l *ordered) error {
			return tx.Model(l).Association("Basket").Unscoped().Delete(l.Basket)
		},
		"Unscoped, Clear": func(tx *gorm.DB, l *ordered) error { return tx.Model(l).Association("Basket").Unscoped().Clear() },
		"the tenant":      func(tx *gorm.DB, l *ordered) error { return tx.Model(l).Association("Tenant").Clear() },
		"children":        func(tx *gorm.DB, _ *ordered) error { return tx.Model(basketOf()).Association("Lines").Clear() },
		"Delete of children": func(tx *gorm.DB, l *ordered) error {
			return tx.Model(basketOf()).Association("Lines").Delete(l)
		},
		"Replace of children": func(tx *gorm.DB, _ *ordered) error {
			return tx.Model(basketOf()).Association("Lines").Replace(&ordered{})
		},
	} {
		for _, held := range []bool{true, false} {
			before, baskets := rowsOf(t, db, "ordereds"), rowsOf(t, db, "baskets")
			var l ordered
			query := db.Preload("Basket").Preload("Tenant")
			if held {
				query = query.Preload("Shop")
			}
			stand.Must(t, query.First(&l, 1).Error)
			err := db.Transaction(func(tx *gorm.DB) error { return write(tx, &l) })
			if err == nil || !strings.Contains(err.Error(), "would set tenant_id to NULL") {
				t.Errorf("%s: %v", name, err)
			}
			stand.Equal(t, name, rowsOf(t, db, "ordereds"), before)
			stand.Equal(t, name+": baskets", rowsOf(t, db, "baskets"), baskets)
		}
		var n int64 // nothing else is taken
		stand.Must(t, db.Exec("INSERT INTO ordereds (id, tenant_id, basket_id, version) VALUES (2, 5, 1, 1)").Error)
		if name == "Clear" {
			l := stand.Row[ordered](t, db, 2)
			stand.Must(t, db.Model(&l).Updates(map[string]any{"basket_id": nil}).Error)
			stand.Must(t, db.Raw("SELECT count(*) FROM ordereds WHERE id = 2 AND tenant_id = 5 AND basket_id IS NULL").Scan(&n).Error)
			stand.Equal(t, "cleared", n, 1)
		}
		stand.Must(t, db.Exec("DELETE FROM ordereds WHERE id = 2").Error)
	}
	l := &purchase{ID: 90, TenantID: 5, ClientID: 1} // its shop is 0: it has none
	stand.Must(t, db.Create(l).Error)
	stand.Must(t, db.Model(l).Association("Client").Clear())
	stand.Must(t, db.Exec("UPDATE purchases SET tenant_id = 5, client_id = 1, version = 1 WHERE id = 90").Error)
	got := stand.Row[purchase](t, db, 90)
	stand.Must(t, db.Model(&got).Association("Client").Delete(&client{TenantID: 5, ID: 1, Version: 1}))
}
