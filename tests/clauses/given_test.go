package clauses_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A clause that is refused when it is given keeps no connection: GORM begins a transaction on such a db, and never ends it.
func TestRefusedClause_keepsNoConnection(t *testing.T) {
	t.Parallel()
	type shelf struct {
		ID int64
	}
	type book struct {
		ID      int64
		ShelfID int64
		Shelf   shelf
		Version int64 `gormlock:"version"`
	}
	for setting, options := range map[string][]gormlock.Option{"as it comes": nil, "prepared": nil, "plain transactions": {gormlock.PlainTransactions()}} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			plugin := gormlock.New(options...)
			t.Cleanup(func() { _ = plugin.Close() })
			opts := []pgtest.Option{pgtest.Plugin(plugin), pgtest.Schema(), pgtest.MaxConns(2)}
			if setting == "prepared" {
				opts = append(opts, pgtest.PrepareStmt())
			}
			db := pgtest.Open(t, opts...)
			stand.Must(t, db.AutoMigrate(&shelf{}, &book{}))
			first := shelf{}
			stand.Must(t, db.Create(&first).Error)
			shelved := book{ShelfID: first.ID}
			stand.Must(t, db.Create(&shelved).Error)
			pool, err := db.DB()
			stand.Must(t, err)
			var nobody any
			for name, refused := range map[string]clause.Expression{
				"a key of nil":     gormlock.XactLock(gormlock.Key("customer", nobody)),
				"a late lock":      gormlock.XactLock(gormlock.Key("customer"), gormlock.Timeout(-1)),
				"no lock":          gormlock.XactLockClause{},
				"a late row lock":  gormlock.RowLock(gormlock.ForUpdate, gormlock.Timeout(-1)),
				"no token":         gormlock.Fence(fence.Token{}),
				"no version":       gormlock.ExpectVersion("x"),
				"two versions":     two{gormlock.ExpectVersion(1), gormlock.ExpectVersion(2)},
				"two locks of row": two{gormlock.RowLock(gormlock.ForUpdate), gormlock.RowLock(gormlock.ForShare)},
			} {
				with := func() *gorm.DB { return db.Clauses(clauses(refused)...) }
				for call, run := range map[string]func() error{
					"Begin": func() error {
						tx := with().Begin()
						if tx.Error == nil {
							tx.Rollback()
						}
						return tx.Error
					},
					"Transaction":     func() error { return with().Transaction(func(*gorm.DB) error { return nil }) },
					"CreateInBatches": func() error { return with().CreateInBatches(&[]book{{}, {}, {}}, 2).Error },
					"CreateBatchSize": func() error {
						return with().Session(&gorm.Session{CreateBatchSize: 2}).Create(&[]book{{}, {}, {}}).Error
					},
					"Connection": func() error { return with().Connection(func(tx *gorm.DB) error { return tx.Error }) },
					"gorm.G": func() error {
						_, err := gorm.G[book](db, clauses(refused)...).Where("id = ?", shelved.ID).
							Set(clause.Association{Association: "Shelf", Type: clause.OpDelete}).Update(t.Context())
						return err
					},
				} {
					err := run()
					if in := pool.Stats().InUse; in > 0 {
						t.Fatalf("%s, %s: %d connections are in use after %v", name, call, in, err)
					}
					if late := name == "no version" || name == "no token"; err == nil && !late { // which is said where something is written
						t.Errorf("%s, %s: no error", name, call)
					}
				}
			}
		})
	}
}

// A transaction of the caller that is given such a clause still ends by the caller.
func TestRefusedClause_leavesTheTransaction(t *testing.T) {
	t.Parallel()
	db := stand.Open(t, pgtest.MaxConns(1))
	tx := db.Begin()
	stand.Must(t, tx.Error)
	refused := tx.Clauses(gormlock.XactLock(gormlock.Key("customer"), gormlock.Timeout(-1)))
	if !errors.Is(refused.Error, gormlock.ErrOption) {
		t.Fatal(refused.Error)
	}
	if err := refused.Transaction(func(*gorm.DB) error { return nil }); !errors.Is(err, gormlock.ErrOption) {
		t.Error(err)
	}
	refused.Rollback()
	stand.Must(t, db.Exec("SELECT 1").Error)
}

// two are given as one.
type two [2]clause.Expression

func (two) Build(clause.Builder) {}

func clauses(given clause.Expression) []clause.Expression {
	if both, are := given.(two); are {
		return both[:]
	}
	return []clause.Expression{given}
}
