package gormlock_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
)

func TestCreatePaths(t *testing.T) {
	t.Parallel()
	onBoth(t, []any{&account{}, &product{}}, createPaths)
}

func createPaths(t *testing.T, db *gorm.DB) {
	many := make([]account, 7)
	must(t, db.CreateInBatches(&many, 3).Error)
	must(t, db.Session(&gorm.Session{CreateBatchSize: 2}).Create([]*account{{}, {}, {}}).Error)
	must(t, db.Select("Balance").Create(&account{Balance: 1}).Error)
	must(t, db.Omit("Version").Create(&account{Balance: 1}).Error)
	must(t, db.Model(&account{}).Create(map[string]any{"balance": 1}).Error)
	must(t, db.Model(&account{}).Create(&[]map[string]any{{"balance": 1}, {"balance": 1, "version": 1}}).Error) // V20
	must(t, db.Create(&[2]account{}).Error)
	must(t, db.Omit("Version").Create(&account{Version: 9}).Error)
	if err := db.Create(&account{Version: -2}).Error; err == nil || !strings.Contains(err.Error(), "negative") {
		t.Error(err)
	}
	if err := db.Clauses(gormlock.ExpectVersion(1)).Create(&account{}).Error; err == nil {
		t.Error("a create with an expected version")
	}
	var stored []account
	must(t, db.Order("version").Find(&stored).Error)
	equal(t, "rows", len(stored), 18)
	equal(t, "explicit", stored[17].Version, 9)
	equal(t, "first", stored[16].Version, 1)
	equal(t, "first", stored[0].Version, 1)
	for _, a := range many {
		equal(t, "memory", a, row[account](t, db, a.ID))
	}
	// A unique violation: nothing is stored, and memory is as before.
	must(t, db.Create(&product{Code: "a"}).Error)
	twice := []product{{Code: "b"}, {Code: "a"}}
	if err := db.Create(&twice).Error; err == nil {
		t.Error("a duplicate key")
	}
	equal(t, "memory", twice[0], product{Code: "b"})

	got := product{}
	must(t, db.Where(product{Code: "a"}).Assign(product{Price: 5}).FirstOrCreate(&got).Error)
	equal(t, "FirstOrCreate", got, row[product](t, db, "a"))
	equal(t, "FirstOrCreate", got.Version, 2)
	fresh := product{}
	must(t, db.Where(product{Code: "n"}).Assign(product{Price: 5}).FirstOrCreate(&fresh).Error)
	equal(t, "FirstOrCreate", fresh, product{Code: "n", Price: 5, Version: 1})
}

func TestBatchPaths(t *testing.T) {
	t.Parallel()
	onBoth(t, []any{&account{}}, batchPaths)
}

func batchPaths(t *testing.T, db *gorm.DB) {
	many := make([]account, 6)
	must(t, db.Create(&many).Error)
	must(t, db.Model(&many[4]).Update("balance", 50).Error)
	// V13: the caller's own RETURNING, by key and not by position.
	shuffled := []account{many[5], many[4], many[0]}
	must(t, db.Model(&shuffled).Clauses(clause.Returning{Columns: []clause.Column{{Name: "balance"}}}).
		Updates(map[string]any{"balance": gorm.Expr("balance + id")}).Error)
	for _, a := range shuffled {
		equal(t, "returned", a, row[account](t, db, a.ID))
	}
	must(t, db.Model(&shuffled).Clauses(clause.Returning{}).Update("note", gorm.Expr("'n' || id")).Error)
	for _, a := range shuffled {
		equal(t, "returned", a, row[account](t, db, a.ID))
	}
	// Copies of one row.
	a, b := shuffled[0], shuffled[0]
	must(t, db.Model([]*account{&a, &b}).Update("balance", 1).Error)
	equal(t, "copy", a, b)
	equal(t, "copy", a, row[account](t, db, a.ID))
	same := []*account{&a, &a}
	must(t, db.Model(&same).Update("balance", 2).Error)
	equal(t, "the same pointer", a, row[account](t, db, a.ID))
	mustStale(t, db.Model([]*account{&a, &b}).Update("balance", 3).Error)
	mustStale(t, db.Save([]*account{&b, &shuffled[1]}).Error)
	// Own conditions leave rows out: those structs stay as they were.
	pair := []account{shuffled[1], a}
	before := slices.Clone(pair)
	res := db.Model(&pair).Where("balance = 2").Update("balance", 9)
	must(t, res.Error)
	equal(t, "rows", res.RowsAffected, 1)
	equal(t, "left out", pair[0], before[0])
	equal(t, "written", pair[1], row[account](t, db, a.ID))
	// Elements without a key.
	if err := db.Model(&[]account{pair[0], {}}).Where("1=1").Update("balance", 0).Error; !errors.Is(err, gorm.ErrPrimaryKeyRequired) {
		t.Error(err)
	}
	if err := db.Model(&[]account{}).Update("balance", 0).Error; !errors.Is(err, gorm.ErrMissingWhereClause) {
		t.Error(err)
	}
	for _, err := range []error{
		db.Model([]*account{&a, nil}).Update("balance", 0).Error, db.Delete([]*account{nil}).Error,
		db.Save([]*account{nil}).Error, db.Save((*account)(nil)).Error, db.Model(&account{}).Updates((*account)(nil)).Error,
	} {
		if err == nil {
			t.Error("a nil pointer is no error")
		}
	}
	must(t, db.Delete(&pair).Error)
	equal(t, "deleted", mustBeStale(t, db.Delete(&pair).Error).Deleted, true)
}

// Aliases, joins and OR do not change which rows are compared.
func TestStatementShapes(t *testing.T) {
	t.Parallel()
	db := versioned(t, []any{&account{}, &product{}})
	a := account{Balance: 1}
	must(t, db.Create(&a).Error)
	old := a
	must(t, db.Table("accounts AS x").Model(&a).Update("balance", 2).Error)
	equal(t, "alias", a, row[account](t, db, a.ID))
	mustStale(t, db.Table("accounts AS x").Model(&old).Update("balance", 3).Error)
	must(t, db.Create(&product{Code: "p", Price: 30}).Error)
	must(t, db.Model(&a).Clauses(clause.From{Tables: []clause.Table{{Name: "products"}}}).Where("products.code = ?", "p").
		Update("balance", gorm.Expr("products.price")).Error)
	equal(t, "from", a.Balance, 30)
	equal(t, "from", a, row[account](t, db, a.ID))
	mustStale(t, db.Model(&old).Clauses(clause.From{Tables: []clause.Table{{Name: "products"}}}).Update("balance", 0).Error)
	mustStale(t, db.Model(&old).Where("balance = 1").Or("balance = 30").Update("balance", 0).Error)
	mustStale(t, db.Model(&old).Where("balance = 1 OR 1=1").Update("balance", 0).Error)
	mustStale(t, db.Where("1=1").Or("balance = 30").Delete(&old).Error)
	equal(t, "row", a, row[account](t, db, a.ID))

	e := mustBeStale(t, db.Table("accounts AS x").Model(&old).Update("balance", 3).Error)
	equal[any](t, "found by its alias", e.Actual, int64(3))
	equal(t, "table", e.Table, "accounts")
	// G5: an update of all columns never inserts, and Save of a struct by value never upserts.
	equal(t, "absent", mustBeStale(t, db.Select("*").Updates(&account{ID: 77}).Error).Deleted, true)
	must(t, db.Select("*").Where("balance = 0").Updates(&a).Error)
	if err := db.Where("balance = 0").Save(a).Error; !errors.Is(err, gorm.ErrRecordNotFound) {
		t.Error(err)
	}
	mustStale(t, db.Save(old).Error)
	must(t, db.Save(account{ID: 78}).Error)
	equal(t, "saved by value", row[account](t, db, 78).Version, 1)
	// A statement that changes the key.
	moved := row[account](t, db, 78)
	must(t, db.Model(&moved).Update("id", 79).Error)
	equal(t, "moved", moved, row[account](t, db, 79))
	gone := account{ID: 78, Version: 2}
	equal[any](t, "named by its old key", mustBeStale(t, db.Model(&gone).Update("id", 80).Error).PrimaryKey["id"], int64(78))
	equal(t, "struct", gone.ID, 78)

	// G17: what is only built changes nothing.
	sql := db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Model(&a).Update("balance", 5) })
	equal(t, "sql", sql, `UPDATE "accounts" SET "balance"=5,"version"="accounts"."version"+1 WHERE "id" = 1 AND "accounts"."version"=3`)
	equal(t, "version", a.Version, 3)
	// A statement that is used again.
	tx := db.Model(&a)
	must(t, tx.Update("balance", 6).Error)
	must(t, db.Model(&a).Session(&gorm.Session{}).Update("balance", 7).Error)
	equal(t, "row", a, row[account](t, db, a.ID))
}

func TestAssociationMode(t *testing.T) {
	t.Parallel()
	onBoth(t, shop, associationMode)
}

func associationMode(t *testing.T, db *gorm.DB) {
	o := newOrder(t, db)
	lines := slices.Clone(o.Lines)
	must(t, db.Model(o).Association("Lines").Replace(&lines[0], &line{Qty: 7}))
	equal(t, "kept", row[line](t, db, lines[0].ID).Version, 1)
	gone := row[line](t, db, lines[1].ID)
	equal(t, "unlinked", gone.OrderID, 0)
	equal(t, "unlinked", gone.Version, 2)
	mustStale(t, db.Save(&lines[1]).Error)
	must(t, db.Model(o).Association("Lines").Delete(&lines[0]))
	equal(t, "unlinked", row[line](t, db, lines[0].ID).Version, 2)

	must(t, db.Model(o).Association("Tags").Append(&tag{Name: "z"}))
	must(t, db.Model(o).Association("Tags").Clear())
	equal(t, "tag", row[tag](t, db, 1).Version, 1)
	equal(t, "owner", row[orderRow](t, db, o.ID).Version, o.Version)

	// Belongs to: the owner's foreign key is a column of its own.
	stale := *o
	must(t, db.Model(o).Association("Customer").Replace(&customer{Name: "other"}))
	equal(t, "owner", row[orderRow](t, db, o.ID).Version, o.Version)
	equal(t, "owner", o.Version, 2)
	mustStale(t, db.Model(&stale).Association("Customer").Replace(&customer{Name: "third"}))
	must(t, db.Model(o).Association("Invoice").Replace(&invoice{Total: 4}))
	equal(t, "old invoice", row[invoice](t, db, 1).Version, 2)
	// Only a key is known of the owner: linking children needs no version.
	must(t, db.Model(&orderRow{ID: o.ID}).Association("Lines").Append(&line{Qty: 1}))
	// A child known by its key is linked and bumped.
	must(t, db.Model(o).Association("Lines").Append(&line{ID: lines[0].ID}))
	linked := row[line](t, db, lines[0].ID)
	equal(t, "linked", linked.OrderID, o.ID)
	equal(t, "linked", linked.Version, 3)
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
	onBoth(t, []any{&sequel{}}, func(t *testing.T, db *gorm.DB) {
		s := sequel{}
		must(t, db.Create(&s).Error)
		if err := db.Model(&s).Update("n", 5).Error; err == nil || !strings.Contains(err.Error(), "NewDB") {
			t.Errorf("it changed nothing: %v", err)
		}
		equal(t, "stored", row[sequel](t, db, s.ID).N, 0)
		s.session = gorm.Session{NewDB: true}
		must(t, db.Model(&s).Update("n", 5).Error)
		equal(t, "stored", row[sequel](t, db, s.ID).N, 6)
		equal(t, "version", s.Version, 3)
	})
}
