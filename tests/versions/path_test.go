package versions_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

func TestCreatePaths(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&stand.Account{}, &product{}}, createPaths)
}

func createPaths(t *testing.T, db *gorm.DB) {
	many := make([]stand.Account, 7)
	stand.Must(t, db.CreateInBatches(&many, 3).Error)
	stand.Must(t, db.Session(&gorm.Session{CreateBatchSize: 2}).Create([]*stand.Account{{}, {}, {}}).Error)
	stand.Must(t, db.Select("Balance").Create(&stand.Account{Balance: 1}).Error)
	stand.Must(t, db.Omit("Version").Create(&stand.Account{Balance: 1}).Error)
	stand.Must(t, db.Model(&stand.Account{}).Create(map[string]any{"balance": 1}).Error)
	stand.Must(t, db.Model(&stand.Account{}).Create(&[]map[string]any{{"balance": 1}, {"balance": 1, "version": 1}}).Error) // V20
	stand.Must(t, db.Create(&[2]stand.Account{}).Error)
	stand.Must(t, db.Omit("Version").Create(&stand.Account{Version: 9}).Error)
	if err := db.Create(&stand.Account{Version: -2}).Error; err == nil || !strings.Contains(err.Error(), "negative") {
		t.Error(err)
	}
	if err := db.Clauses(gormlock.ExpectVersion(1)).Create(&stand.Account{}).Error; err == nil {
		t.Error("a create with an expected version")
	}
	var stored []stand.Account
	stand.Must(t, db.Order("version").Find(&stored).Error)
	stand.Equal(t, "rows", len(stored), 18)
	stand.Equal(t, "explicit", stored[17].Version, 9)
	stand.Equal(t, "first", stored[16].Version, 1)
	stand.Equal(t, "first", stored[0].Version, 1)
	for _, a := range many {
		stand.Equal(t, "memory", a, stand.Row[stand.Account](t, db, a.ID))
	}
	// A unique violation: nothing is stored, and memory is as before.
	stand.Must(t, db.Create(&product{Code: "a"}).Error)
	twice := []product{{Code: "b"}, {Code: "a"}}
	if err := db.Create(&twice).Error; err == nil {
		t.Error("a duplicate key")
	}
	stand.Equal(t, "memory", twice[0], product{Code: "b"})

	got := product{}
	stand.Must(t, db.Where(product{Code: "a"}).Assign(product{Price: 5}).FirstOrCreate(&got).Error)
	stand.Equal(t, "FirstOrCreate", got, stand.Row[product](t, db, "a"))
	stand.Equal(t, "FirstOrCreate", got.Version, 2)
	fresh := product{}
	stand.Must(t, db.Where(product{Code: "n"}).Assign(product{Price: 5}).FirstOrCreate(&fresh).Error)
	stand.Equal(t, "FirstOrCreate", fresh, product{Code: "n", Price: 5, Version: 1})
}

func TestBatchPaths(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&stand.Account{}}, batchPaths)
}

func batchPaths(t *testing.T, db *gorm.DB) {
	many := make([]stand.Account, 6)
	stand.Must(t, db.Create(&many).Error)
	stand.Must(t, db.Model(&many[4]).Update("balance", 50).Error)
	// V13: the caller's own RETURNING, by key and not by position.
	shuffled := []stand.Account{many[5], many[4], many[0]}
	stand.Must(t, db.Model(&shuffled).Clauses(clause.Returning{Columns: []clause.Column{{Name: "balance"}}}).
		Updates(map[string]any{"balance": gorm.Expr("balance + id")}).Error)
	for _, a := range shuffled {
		stand.Equal(t, "returned", a, stand.Row[stand.Account](t, db, a.ID))
	}
	stand.Must(t, db.Model(&shuffled).Clauses(clause.Returning{}).Update("note", gorm.Expr("'n' || id")).Error)
	for _, a := range shuffled {
		stand.Equal(t, "returned", a, stand.Row[stand.Account](t, db, a.ID))
	}
	// Copies of one row.
	a, b := shuffled[0], shuffled[0]
	stand.Must(t, db.Model([]*stand.Account{&a, &b}).Update("balance", 1).Error)
	stand.Equal(t, "copy", a, b)
	stand.Equal(t, "copy", a, stand.Row[stand.Account](t, db, a.ID))
	same := []*stand.Account{&a, &a}
	stand.Must(t, db.Model(&same).Update("balance", 2).Error)
	stand.Equal(t, "the same pointer", a, stand.Row[stand.Account](t, db, a.ID))
	stand.MustStale(t, db.Model([]*stand.Account{&a, &b}).Update("balance", 3).Error)
	stand.MustStale(t, db.Save([]*stand.Account{&b, &shuffled[1]}).Error)
	// Own conditions leave rows out: those structs stay as they were.
	pair := []stand.Account{shuffled[1], a}
	before := slices.Clone(pair)
	res := db.Model(&pair).Where("balance = 2").Update("balance", 9)
	stand.Must(t, res.Error)
	stand.Equal(t, "rows", res.RowsAffected, 1)
	stand.Equal(t, "left out", pair[0], before[0])
	stand.Equal(t, "written", pair[1], stand.Row[stand.Account](t, db, a.ID))
	// Elements without a key.
	if err := db.Model(&[]stand.Account{pair[0], {}}).Where("1=1").Update("balance", 0).Error; !errors.Is(err, gorm.ErrPrimaryKeyRequired) {
		t.Error(err)
	}
	if err := db.Model(&[]stand.Account{}).Update("balance", 0).Error; !errors.Is(err, gorm.ErrMissingWhereClause) {
		t.Error(err)
	}
	for _, err := range []error{
		db.Model([]*stand.Account{&a, nil}).Update("balance", 0).Error, db.Delete([]*stand.Account{nil}).Error,
		db.Save([]*stand.Account{nil}).Error, db.Save((*stand.Account)(nil)).Error, db.Model(&stand.Account{}).Updates((*stand.Account)(nil)).Error,
	} {
		if err == nil {
			t.Error("a nil pointer is no error")
		}
	}
	stand.Must(t, db.Delete(&pair).Error)
	stand.Equal(t, "deleted", stand.MustBeStale(t, db.Delete(&pair).Error).Deleted, true)
}

// Aliases, joins and OR do not change which rows are compared.
func TestStatementShapes(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}, &product{}})
	a := stand.Made(t, db, stand.Account{Balance: 1})
	old := a
	stand.Must(t, db.Table("accounts AS x").Model(&a).Update("balance", 2).Error)
	stand.Equal(t, "alias", a, stand.Row[stand.Account](t, db, a.ID))
	stand.MustStale(t, db.Table("accounts AS x").Model(&old).Update("balance", 3).Error)
	stand.Must(t, db.Create(&product{Code: "p", Price: 30}).Error)
	stand.Must(t, db.Model(&a).Clauses(clause.From{Tables: []clause.Table{{Name: "products"}}}).Where("products.code = ?", "p").
		Update("balance", gorm.Expr("products.price")).Error)
	stand.Equal(t, "from", a.Balance, 30)
	stand.Equal(t, "from", a, stand.Row[stand.Account](t, db, a.ID))
	stand.MustStale(t, db.Model(&old).Clauses(clause.From{Tables: []clause.Table{{Name: "products"}}}).Update("balance", 0).Error)
	stand.MustStale(t, db.Model(&old).Where("balance = 1").Or("balance = 30").Update("balance", 0).Error)
	stand.MustStale(t, db.Model(&old).Where("balance = 1 OR 1=1").Update("balance", 0).Error)
	stand.MustStale(t, db.Where("1=1").Or("balance = 30").Delete(&old).Error)
	stand.Equal(t, "row", a, stand.Row[stand.Account](t, db, a.ID))

	e := stand.MustBeStale(t, db.Table("accounts AS x").Model(&old).Update("balance", 3).Error)
	stand.Equal[any](t, "found by its alias", e.Actual, int64(3))
	stand.Equal(t, "table", e.Table, "accounts")
	// G5: an update of all columns never inserts, and Save of a struct by value never upserts.
	stand.Equal(t, "absent", stand.MustBeStale(t, db.Select("*").Updates(&stand.Account{ID: 77}).Error).Deleted, true)
	stand.Must(t, db.Select("*").Where("balance = 0").Updates(&a).Error)
	if err := db.Where("balance = 0").Save(a).Error; !errors.Is(err, gorm.ErrRecordNotFound) {
		t.Error(err)
	}
	stand.MustStale(t, db.Save(old).Error)
	stand.Must(t, db.Save(stand.Account{ID: 78}).Error)
	stand.Equal(t, "saved by value", stand.Row[stand.Account](t, db, 78).Version, 1)
	// A statement that changes the key.
	moved := stand.Row[stand.Account](t, db, 78)
	stand.Must(t, db.Model(&moved).Update("id", 79).Error)
	stand.Equal(t, "moved", moved, stand.Row[stand.Account](t, db, 79))
	gone := stand.Account{ID: 78, Version: 2}
	stand.Equal[any](t, "named by its old key", stand.MustBeStale(t, db.Model(&gone).Update("id", 80).Error).PrimaryKey["id"], int64(78))
	stand.Equal(t, "struct", gone.ID, 78)

	// G17: what is only built changes nothing.
	sql := db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Model(&a).Update("balance", 5) })
	stand.Equal(t, "sql", sql, `UPDATE "accounts" SET "balance"=5,"version"="accounts"."version"+1 WHERE "id" = 1 AND "accounts"."version"=3`+
		` RETURNING CASE WHEN "accounts"."version">3 THEN '1' ELSE 'gormlock' END::bool`)
	stand.Equal(t, "version", a.Version, 3)
	// A statement that is used again.
	tx := db.Model(&a)
	stand.Must(t, tx.Update("balance", 6).Error)
	stand.Must(t, db.Model(&a).Session(&gorm.Session{}).Update("balance", 7).Error)
	stand.Equal(t, "row", a, stand.Row[stand.Account](t, db, a.ID))
}

func TestAssociationMode(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, shop, associationMode)
}

func associationMode(t *testing.T, db *gorm.DB) {
	o := newOrder(t, db)
	lines := slices.Clone(o.Lines)
	stand.Must(t, db.Model(o).Association("Lines").Replace(&lines[0], &line{Qty: 7}))
	stand.Equal(t, "kept", stand.Row[line](t, db, lines[0].ID).Version, 1)
	gone := stand.Row[line](t, db, lines[1].ID)
	stand.Equal(t, "unlinked", gone.OrderID, 0)
	stand.Equal(t, "unlinked", gone.Version, 2)
	stand.MustStale(t, db.Save(&lines[1]).Error)
	stand.Must(t, db.Model(o).Association("Lines").Delete(&lines[0]))
	stand.Equal(t, "unlinked", stand.Row[line](t, db, lines[0].ID).Version, 2)

	stand.Must(t, db.Model(o).Association("Tags").Append(&tag{Name: "z"}))
	stand.Must(t, db.Model(o).Association("Tags").Clear())
	stand.Equal(t, "tag", stand.Row[tag](t, db, 1).Version, 1)
	stand.Equal(t, "owner", stand.Row[orderRow](t, db, o.ID).Version, o.Version)

	// Belongs to: the owner's foreign key is a column of its own.
	stale := *o
	stand.Must(t, db.Model(o).Association("Customer").Replace(&customer{Name: "other"}))
	stand.Equal(t, "owner", stand.Row[orderRow](t, db, o.ID).Version, o.Version)
	stand.Equal(t, "owner", o.Version, 2)
	stand.MustStale(t, db.Model(&stale).Association("Customer").Replace(&customer{Name: "third"}))
	stand.Must(t, db.Model(o).Association("Invoice").Replace(&invoice{Total: 4}))
	stand.Equal(t, "old invoice", stand.Row[invoice](t, db, 1).Version, 2)
	// Only a key is known of the owner: linking children needs no version.
	stand.Must(t, db.Model(&orderRow{ID: o.ID}).Association("Lines").Append(&line{Qty: 1}))
	// A child known by its key is linked and bumped.
	stand.Must(t, db.Model(o).Association("Lines").Append(&line{ID: lines[0].ID}))
	linked := stand.Row[line](t, db, lines[0].ID)
	stand.Equal(t, "linked", linked.OrderID, o.ID)
	stand.Equal(t, "linked", linked.Version, 3)
}

// sequel is a model whose hook changes the row again, by a session that GORM gives the hook's own statement.
type sequel struct {
	ID, N   int64
	Version int64 `gormlock:"version"`
	session gorm.Session
}

func (s *sequel) AfterUpdate(tx *gorm.DB) error {
	s.session.SkipHooks = true
	return tx.Session(&s.session).Model(s).Update("n", s.N+1).Error
}

// A session that a hook makes of its tx without NewDB would send the statement of the hook again, and not what it is
// asked for.
func TestASessionInAHook(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&sequel{}}, func(t *testing.T, db *gorm.DB) {
		s := stand.Made(t, db, sequel{})
		if err := db.Model(&s).Update("n", 5).Error; err == nil || !strings.Contains(err.Error(), "NewDB") {
			t.Errorf("it changed nothing: %v", err)
		}
		stand.Equal(t, "stored", stand.Row[sequel](t, db, s.ID).N, 0)
		s.session = gorm.Session{NewDB: true}
		stand.Must(t, db.Model(&s).Update("n", 5).Error)
		stand.Equal(t, "stored", stand.Row[sequel](t, db, s.ID).N, 6)
		stand.Equal(t, "version", s.Version, 3)
	})
}
