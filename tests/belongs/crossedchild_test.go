package belongs_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A child that gets the key of its parent does not take its own associations along.
func TestSharedColumn_ofAChild(t *testing.T) {
	t.Parallel()
	db := crossed(t)
	ways := map[string]func(b *basket, l *ordered) error{
		"Append":       func(b *basket, l *ordered) error { return db.Model(b).Association("Lines").Append(l) },
		"Append, full": func(b *basket, l *ordered) error { return full(db).Model(b).Association("Lines").Append(l) },
		"Replace":      func(b *basket, l *ordered) error { return db.Model(b).Association("Lines").Replace(l) },
		"Append, one":  func(b *basket, l *ordered) error { return db.Model(b).Association("Gift").Append(l) },
		"Save":         func(b *basket, l *ordered) error { b.Lines = []*ordered{l}; return db.Save(b).Error },
		"Save, one":    func(b *basket, l *ordered) error { b.Gift = l; return db.Save(b).Error },
		"full":         func(b *basket, l *ordered) error { b.Lines = []*ordered{l}; return full(db).Save(b).Error },
		"Updates":      func(b *basket, l *ordered) error { b.Lines = []*ordered{l}; return db.Updates(b).Error },
		"slice":        func(b *basket, l *ordered) error { b.Lines = []*ordered{l}; return db.Save([]*basket{b}).Error },
		"Create": func(_ *basket, l *ordered) error {
			return db.Create(&basket{TenantID: 9, ID: 50, Lines: []*ordered{l}}).Error
		},
		"transaction": func(b *basket, l *ordered) error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Model(b).Association("Lines").Append(l) })
		},
	}
	read := func(name string, preload ...string) *ordered {
		query := db
		for _, association := range preload {
			query = query.Preload(association)
		}
		l := &ordered{}
		stand.Must(t, query.First(l, 1).Error)
		stand.Equal(t, name, *l.TenantID, 5)
		return l
	}
	five := int64(5)
	one := int64(1)
	for name, write := range ways {
		nine := func() *basket { return inTenantOf[basket](t, db, 9) }
		before := rowsOf(t, db, "ordereds")
		for what, line := range map[string]*ordered{
			"the shop that it holds":   read(name, "Shop"),
			"the tenant that it holds": read(name, "Tenant", "Basket"),
			"the shop that it names":   read(name, "Basket"),
			"a new one, held":          {Shop: inTenantOf[shopOf](t, db, 5)},
			"a new one of a new shop":  {Shop: &shopOf{ID: 70}},
			"a new one, named":         {TenantID: &five, ShopID: &one},
		} {
			held, was := line.Shop, line.TenantID
			if err := write(nine(), line); err == nil || !strings.Contains(err.Error(), "another") {
				t.Errorf("%s, %s: %v", name, what, err)
			}
			stand.Equal(t, name+", "+what, rowsOf(t, db, "ordereds"), before)
			if line.Shop != held || (was == nil) != (line.TenantID == nil) || was != nil && *line.TenantID != 5 {
				t.Errorf("%s, %s: the struct is %+v", name, what, line)
			}
		}
		for what, line := range map[string]*ordered{
			"new":           {},
			"of a shop":     {ShopID: &one},
			"holds it":      {Shop: inTenantOf[shopOf](t, db, 9)},
			"of the tenant": {TenantID: &[]int64{9}[0], ShopID: &one},
			"of no shop":    {TenantID: &five},
		} {
			if err := write(nine(), line); err != nil {
				t.Errorf("%s, %s: %v", name, what, err)
			} else {
				stand.Equal(t, name+", "+what, *stand.Row[ordered](t, db, line.ID).TenantID, 9)
			}
			stand.Must(t, db.Exec("DELETE FROM ordereds WHERE id <> 1; DELETE FROM baskets WHERE id = 50").Error)
		}
		line := read(name, "Shop")
		line.TenantID, line.Shop = &[]int64{9}[0], nil // the caller says so
		stand.Must(t, write(nine(), line))
		stand.Equal(t, name, *stand.Row[ordered](t, db, 1).TenantID, 9)
		stand.Must(t, db.Exec("DELETE FROM baskets WHERE id = 50; UPDATE ordereds SET tenant_id = 5, basket_id = 1, gift_of = NULL, version = 1").Error)
	}
}

func (s *store) BeforeCreate(tx *gorm.DB) error {
	if id, is := tx.Statement.Context.Value(ofTenant{}).(int64); is {
		s.TenantID = id
	}
	return nil
}

// A child whose own new association gives it another part of its foreign key does not go to another parent.
func TestSharedColumn_ofAChildThatWouldGoElsewhere(t *testing.T) {
	t.Parallel()
	db := crossed(t)
	stand.Must(t, db.Exec("INSERT INTO halls VALUES (5, 1, 1), (9, 1, 1)").Error)
	for name, write := range map[string]func(tx *gorm.DB, h *hall, s *hallShelf) error{
		"Save": func(tx *gorm.DB, h *hall, s *hallShelf) error { h.Shelves = []*hallShelf{s}; return tx.Save(h).Error },
		"full": func(tx *gorm.DB, h *hall, s *hallShelf) error {
			h.Shelves = []*hallShelf{s}
			return full(tx).Save(h).Error
		},
		"Create": func(tx *gorm.DB, _ *hall, s *hallShelf) error {
			return tx.Create(&hall{TenantID: 9, ID: 2, Shelves: []*hallShelf{s}}).Error
		},
	} {
		for what, tenant := range map[string]int64{"no tenant": 0, "another tenant": 5} {
			tx := db.WithContext(inTenant(t, tenant))
			before := rowsOf(t, db, "hall_shelves")
			if err := write(tx, inTenantOf[hall](t, db, 9), &hallShelf{Store: &store{}}); err == nil || !strings.Contains(err.Error(), "another") {
				t.Errorf("%s, %s: %v", name, what, err)
			}
			stand.Equal(t, name+", "+what, rowsOf(t, db, "hall_shelves"), before)
		}
		s := &hallShelf{Store: &store{}}
		stand.Must(t, write(db.WithContext(inTenant(t, 9)), inTenantOf[hall](t, db, 9), s))
		stand.Equal(t, name, stand.Row[hallShelf](t, db, s.ID).TenantID, 9)
	}
}
