package versions_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// logLine has no version.
type logLine struct {
	ID      int64
	Balance int64
	Note    string
}

// A chain keeps the model that it was used with. A create or a delete of another model's struct would write that one's table: it is an error.
func TestReusedChain_ofAnotherModel(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&stand.Account{}, &shelvedPage{}, &logLine{}}, func(t *testing.T, db *gorm.DB) {
		for before, first := range map[string]func(tx *gorm.DB) *gorm.DB{
			"create of a log": func(tx *gorm.DB) *gorm.DB { return tx.Create(&logLine{Note: "log"}) },
			"count of logs":   func(tx *gorm.DB) *gorm.DB { var n int64; return tx.Model(&logLine{}).Count(&n) },
			"update of a log": func(tx *gorm.DB) *gorm.DB { return tx.Model(&logLine{ID: 100}).Update("note", "x") },
			"create of a page": func(tx *gorm.DB) *gorm.DB {
				return tx.Create(&shelvedPage{Text: "page"})
			},
			"read of a log": func(tx *gorm.DB) *gorm.DB { return tx.First(&logLine{}, 100) },
			"logs by raw SQL": func(tx *gorm.DB) *gorm.DB {
				var logs []logLine
				return tx.Raw("SELECT * FROM log_lines").Scan(&logs)
			},
		} {
			for after, second := range map[string]func(tx *gorm.DB, a *stand.Account) *gorm.DB{
				"create":          func(tx *gorm.DB, _ *stand.Account) *gorm.DB { return tx.Create(&stand.Account{Balance: 5}) },
				"create of many":  func(tx *gorm.DB, _ *stand.Account) *gorm.DB { return tx.Create(&[]*stand.Account{{Balance: 5}}) },
				"delete":          func(tx *gorm.DB, a *stand.Account) *gorm.DB { return tx.Delete(a) },
				"delete by a key": func(tx *gorm.DB, a *stand.Account) *gorm.DB { return tx.Delete(&stand.Account{}, a.ID) },
				"save":            func(tx *gorm.DB, a *stand.Account) *gorm.DB { return tx.Save(a) },
				"save of many":    func(tx *gorm.DB, a *stand.Account) *gorm.DB { return tx.Save([]*stand.Account{a}) },
				"upsert": func(tx *gorm.DB, a *stand.Account) *gorm.DB {
					return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(a)
				},
				"update": func(tx *gorm.DB, a *stand.Account) *gorm.DB { return tx.Model(a).Update("balance", 5) },
				"update of many": func(tx *gorm.DB, _ *stand.Account) *gorm.DB {
					return tx.Model(&stand.Account{}).Where("balance = 1").Update("balance", 5)
				},
				"delete of many": func(tx *gorm.DB, _ *stand.Account) *gorm.DB {
					return tx.Model(&stand.Account{}).Where("balance = 1").Delete(&stand.Account{})
				},
				"create of a map": func(tx *gorm.DB, _ *stand.Account) *gorm.DB {
					return tx.Model(&stand.Account{}).Create(map[string]any{"balance": 5})
				},
				"read":         func(tx *gorm.DB, _ *stand.Account) *gorm.DB { return tx.First(&stand.Account{}, 100) },
				"read of many": func(tx *gorm.DB, _ *stand.Account) *gorm.DB { return tx.Find(&[]stand.Account{}) },
				"scan": func(tx *gorm.DB, _ *stand.Account) *gorm.DB {
					return tx.Model(&stand.Account{}).Where("id = 1").Scan(&stand.Account{})
				},
				"read of a model": func(tx *gorm.DB, _ *stand.Account) *gorm.DB {
					var balances []int64
					return tx.Model(&stand.Account{}).Pluck("balance", &balances)
				},
			} {
				what := after + " behind " + before
				for _, model := range []any{&stand.Account{}, &shelvedPage{}, &logLine{}} {
					stand.MustDo(t, db.Where("1 = 1").Unscoped().Delete(model))
				}
				stand.MustDo(t, db.Create(&logLine{ID: 100}))
				a := stand.Made(t, db, stand.Account{ID: 1, Balance: 1})
				stand.Must(t, db.Connection(func(tx *gorm.DB) error {
					stand.MustDo(t, first(tx))
					mustSayReused(t, what, second(tx, &a).Error)
					return nil
				}))
				stand.Equal(t, what, stand.Row[stand.Account](t, db, 1), a)
				var logs int64
				stand.MustDo(t, db.Model(&logLine{}).Where("id = 100 OR note = 'log'").Count(&logs))
				stand.Equal(t, what+": no log was lost", logs, map[bool]int64{true: 2, false: 1}[before == "create of a log"])
			}
		}
	})
}

// A row with a version is not overwritten by a struct of another model either.
func TestReusedChain_ofAModelWithAVersion(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}, &logLine{}})
	a := stand.Made(t, db, stand.Account{Balance: 1})
	stand.Must(t, db.Connection(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Model(&a).Update("balance", 2))
		mustSayReused(t, "save", tx.Save(&logLine{ID: 55}).Error)
		return nil
	}))
	stand.Equal(t, "stored", stand.Row[stand.Account](t, db, a.ID), a)
}

// Two models may have the same fields: what has a table of its own is another model.
func TestReusedChain_ofAModelWithTheSameFields(t *testing.T) {
	t.Parallel()
	type archived stand.Account
	for server, open := range map[string]func(t *testing.T) *gorm.DB{
		"postgres": func(t *testing.T) *gorm.DB {
			t.Helper()
			return stand.Versioned(t, []any{&stand.Account{}, &archived{}})
		},
		"sqlite": func(t *testing.T) *gorm.DB {
			t.Helper()
			return stand.OnSQLite(t, []any{&stand.Account{}, &archived{}})
		},
		"mariadb": func(t *testing.T) *gorm.DB {
			t.Helper()
			return mariaserver.Open(t, []any{&stand.Account{}, &archived{}})
		},
	} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			a, old := stand.Made(t, db, stand.Account{ID: 1, Balance: 1}), stand.Made(t, db, archived{ID: 1, Balance: 2})
			stand.Must(t, db.Connection(func(tx *gorm.DB) error {
				var n int64
				stand.MustDo(t, tx.Model(&stand.Account{}).Count(&n))
				mustSayReused(t, "delete", tx.Delete(&old).Error)
				return nil
			}))
			stand.Equal(t, "stored", stand.Row[stand.Account](t, db, 1), a)
		})
	}
}

// A new chain of one model may read into what is no model, and return deleted rows into it.
func TestNewChain_intoAnotherType(t *testing.T) {
	t.Parallel()
	type summary struct {
		ID, Balance int64
	}
	type view struct {
		ID, Balance int64
		Version     int64 `gormlock:"version"`
	}
	db := stand.Versioned(t, []any{&stand.Account{}})
	stand.Made(t, db, stand.Account{Balance: 1})
	var summaries, gone []summary
	stand.MustDo(t, db.Model(&stand.Account{}).Find(&summaries))
	stand.Equal(t, "read", len(summaries), 1)
	var views []view
	stand.MustDo(t, db.Model(&stand.Account{}).Find(&views))
	stand.Equal(t, "read with the version", views[0].Version, 1)
	stand.MustDo(t, db.Table("accounts").Find(&views))
	stand.MustDo(t, db.Model(&stand.Account{}).Clauses(clause.Returning{}).Where("balance = 1").Delete(&gone))
	stand.Equal(t, "deleted", len(gone), 1)
}

// listed is a view of accounts, and old account a table of them.
type listed struct {
	ID, Balance int64
	Version     int64 `gormlock:"version"`
}

type oldAccount stand.Account

func (listed) TableName() string { return "listed" }

// Pages of a query are read by one chain. A chain keeps the table that the caller has named.
func TestReusedChain_inPages(t *testing.T) {
	t.Parallel()
	type row struct{ ID, Balance int64 }
	db := stand.Versioned(t, []any{&stand.Account{}, &oldAccount{}})
	stand.MustDo(t, db.Exec("CREATE VIEW listed AS SELECT * FROM accounts"))
	for range 3 {
		stand.Made(t, db, stand.Account{Balance: 1})
	}
	var rows []row
	var views []listed
	var accounts []stand.Account
	var n int64
	for what, chain := range map[string]struct {
		query *gorm.DB
		into  any
	}{
		"a table into rows":           {db.Table("accounts").Where("balance > 0"), &rows},
		"a model into rows":           {db.Model(&stand.Account{}).Where("balance > 0"), &rows},
		"a model into a view":         {db.Model(&stand.Account{}).Where("balance > 0"), &views},
		"a table into a view":         {db.Table("accounts").Where("balance > 0"), &views},
		"a view into the model":       {db.Model(&listed{}).Where("balance > 0"), &accounts},
		"a table of another model":    {db.Table("old_accounts").Where("id > 0"), &accounts},
		"joined rows of another one":  {db.Model(&oldAccount{}).Joins("RIGHT JOIN accounts ON true"), &rows},
		"what its scope has named":    {db.Scopes(func(db *gorm.DB) *gorm.DB { db.Statement.Table = "old_accounts"; return db }).Model(&stand.Account{}), &accounts},
		"a model into an old account": {db.Session(&gorm.Session{}).Model(&stand.Account{}), &[]oldAccount{}},
	} {
		if what != "a view into the model" && what != "what its scope has named" && what != "a model into an old account" {
			stand.MustDo(t, chain.query.Count(&n))
		}
		if err := chain.query.Select("*").Limit(2).Find(chain.into).Error; err != nil && what != "joined rows of another one" {
			t.Errorf("%s: %v", what, err)
		}
	}
	stand.MustDo(t, db.Model(&stand.Account{}).Find(&[]oldAccount{})) // to copy them, by a new chain
	archive := db.Table("old_accounts")
	for range 2 {
		stand.MustDo(t, archive.Create(&stand.Account{Balance: 2}))
	}
	stand.MustDo(t, db.Model(&oldAccount{}).Count(&n))
	stand.Equal(t, "archived", n, 2)
}

// accountAgain is another type of the same rows.
type accountAgain stand.Account

func (accountAgain) TableName() string { return "accounts" }

func TestReusedChain_ofAnotherTypeOfTheSameTable(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	a := accountAgain(stand.Made(t, db, stand.Account{Balance: 1}))
	stand.Equal(t, "deleted", stand.MustDo(t, db.Model(&stand.Account{}).Delete(&a)).RowsAffected, 1)
	stand.MustDo(t, db.Model(&stand.Account{}).Create(&a))
	stand.Equal(t, "created again", stand.Row[stand.Account](t, db, a.ID).Balance, 1)
	type plain stand.Account // without its methods, as programs write it to leave out hooks
	stand.MustDo(t, db.Model(&stand.Account{}).Create((*plain)(&stand.Account{Balance: 3})))
}

// The same where tables lie in schemas, whose names GORM keeps as if the caller had given them.
func TestReusedChain_ofAnotherSchema(t *testing.T) {
	t.Parallel()
	db := stand.Open(t, pgtest.Through(pgtest.Database(t)))
	stand.MustDo(t, db.Exec("CREATE SCHEMA hook_shelf; CREATE SCHEMA hook_notes"))
	stand.Must(t, db.AutoMigrate(&logbook{}, &schemaBook{}, &notedLogbook{}))
	firsts := map[string]func(tx *gorm.DB) *gorm.DB{
		"nothing": func(tx *gorm.DB) *gorm.DB { return tx },
		"update":  func(tx *gorm.DB) *gorm.DB { return tx.Model(&schemaBook{ID: 1, Version: 1}).Update("text", "first") },
		"create":  func(tx *gorm.DB) *gorm.DB { return tx.Create(&schemaBook{ID: 5}) },
		"read":    func(tx *gorm.DB) *gorm.DB { return tx.Find(&[]schemaBook{}) },
		"count":   func(tx *gorm.DB) *gorm.DB { return tx.Model(&schemaBook{}).Count(new(int64)) },
	}
	for table, model := range map[string]func() any{
		"hook_notes.logbooks": func() any { return &notedLogbook{ID: 77, Version: 1, Text: "second"} },
		"logbooks":            func() any { return &logbook{ID: 77, Version: 1, Text: "second"} },
	} {
		for second, write := range map[string]func(tx *gorm.DB) *gorm.DB{
			"update": func(tx *gorm.DB) *gorm.DB { return tx.Model(model()).Update("text", "second") },
			"bulk":   func(tx *gorm.DB) *gorm.DB { return tx.Model(model()).Where("id = 77").Update("text", "second") },
			"save":   func(tx *gorm.DB) *gorm.DB { return tx.Save(model()) },
			"touch":  func(tx *gorm.DB) *gorm.DB { _ = tx.AddError(gormlock.Touch(tx, model())); return tx },
			"delete": func(tx *gorm.DB) *gorm.DB { return tx.Model(model()).Delete(model()) },
		} {
			for first, do := range firsts {
				what := table + ": " + first + ", " + second
				for _, table := range []string{"logbooks", "hook_shelf.schema_books", "hook_notes.logbooks"} {
					stand.MustDo(t, db.Exec("DELETE FROM "+table))
					stand.MustDo(t, db.Exec("INSERT INTO "+table+" (id, text) VALUES (1, ''), (77, '')"))
				}
				var err error
				stand.Must(t, db.Connection(func(tx *gorm.DB) error {
					stand.MustDo(t, do(tx))
					err = write(tx).Error
					return nil
				}))
				if err != nil && first == "nothing" {
					t.Errorf("%s: %v", what, err)
				}
				var left int64
				stand.MustDo(t, db.Raw("SELECT count(*) FROM "+table+" WHERE id = 77 AND version = 1").Scan(&left))
				if (err == nil) != (left == 0) {
					t.Errorf("%s: %v, and %d row as before", what, err, left)
				}
				stand.Equal(t, what, stand.Row[schemaBook](t, db, 77), schemaBook{ID: 77, Version: 1})
			}
		}
	}
}
