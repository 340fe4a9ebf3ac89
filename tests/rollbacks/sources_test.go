package rollbacks_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// memo is a model without a version: its column of this name counts something else.
type memo struct {
	ID, AccountID, Version int64
}

// sources are what the row of an account can be read from, of which only some name its table.
var sources = map[string]string{
	"its table":              "accounts",
	"its table, in capitals": "ACCOUNTS AS a",
	"a view":                 "account_view",
	"a view of a view":       `"account_views"`,
	"a part of its table":    "accounts_part",
	"a function":             "account_rows() AS r",
	"a function's query":     "(SELECT * FROM account_rows()) AS r",
	"a view's query":         "(SELECT * FROM account_view) AS v",
	"a join":                 "account_view JOIN (SELECT) AS one ON true",
	"WITH":                   "(WITH w AS (SELECT * FROM account_view) SELECT * FROM w) AS v",
	"a cursor":               "", // which only raw SQL reads
}

// readsFrom are reads of a source, which return a write by what was read.
var readsFrom = map[string]func(t *testing.T, tx *gorm.DB, from string) (write func(db *gorm.DB) error){
	"Table, Take of a form": func(t *testing.T, tx *gorm.DB, from string) func(*gorm.DB) error {
		t.Helper()
		var form balanceOf
		stand.MustDo(t, tx.Table(from).Take(&form))
		return byForm(&form)
	},
	"Table, Find of maps": func(t *testing.T, tx *gorm.DB, from string) func(*gorm.DB) error {
		t.Helper()
		var all []map[string]any
		stand.MustDo(t, tx.Table(from).Find(&all))
		return byMap(all[0])
	},
	"Table, Scan of forms": func(t *testing.T, tx *gorm.DB, from string) func(*gorm.DB) error {
		t.Helper()
		var forms []*balanceOf
		stand.MustDo(t, tx.Table(from).Scan(&forms))
		return byForm(forms[0])
	},
	"Table, Pluck": func(t *testing.T, tx *gorm.DB, from string) func(*gorm.DB) error {
		t.Helper()
		var versions []int64
		stand.MustDo(t, tx.Table(from).Pluck("version", &versions))
		return func(db *gorm.DB) error { return byVersion(db, versions[0]) }
	},
	"Table, a form of gorm.G": func(t *testing.T, tx *gorm.DB, from string) func(*gorm.DB) error {
		t.Helper()
		form, err := gorm.G[balanceOf](tx).Table(from).Take(t.Context())
		stand.Must(t, err)
		return byForm(&form)
	},
	"Raw, Scan of a form": func(t *testing.T, tx *gorm.DB, from string) func(*gorm.DB) error {
		t.Helper()
		var form balanceOf
		stand.MustDo(t, tx.Raw(selectFrom(from)).Scan(&form))
		return byForm(&form)
	},
	"Raw, Find of a form": func(t *testing.T, tx *gorm.DB, from string) func(*gorm.DB) error {
		t.Helper()
		var form balanceOf
		stand.MustDo(t, tx.Raw(selectFrom(from)).Find(&form))
		return byForm(&form)
	},
	"Raw, Take of a map": func(t *testing.T, tx *gorm.DB, from string) func(*gorm.DB) error {
		t.Helper()
		m := map[string]any{}
		stand.MustDo(t, tx.Raw(selectFrom(from)).Take(&m))
		return byMap(m)
	},
	"Raw, Scan of a map": func(t *testing.T, tx *gorm.DB, from string) func(*gorm.DB) error {
		t.Helper()
		m := map[string]any{}
		stand.MustDo(t, tx.Raw(selectFrom(from)).Scan(&m))
		return byMap(m)
	},
	"Raw, forms of gorm.G": func(t *testing.T, tx *gorm.DB, from string) func(*gorm.DB) error {
		t.Helper()
		forms, err := gorm.G[balanceOf](tx).Raw(selectFrom(from)).Find(t.Context())
		stand.Must(t, err)
		return byForm(&forms[0])
	},
	"Raw, Find of a model without a version": func(t *testing.T, tx *gorm.DB, from string) func(*gorm.DB) error {
		t.Helper()
		var m memo
		stand.MustDo(t, tx.Raw(selectFrom(from)).Find(&m))
		return func(db *gorm.DB) error { return byVersion(db, m.Version) }
	},
	"a sub-query in Select": func(t *testing.T, tx *gorm.DB, from string) func(*gorm.DB) error {
		t.Helper()
		var form balanceOf
		stand.MustDo(t, tx.Model(&memo{}).Select("1 AS id, (SELECT version FROM "+from+") AS version").Take(&form))
		return byForm(&form)
	},
	"a join of a model without a version": func(t *testing.T, tx *gorm.DB, from string) func(*gorm.DB) error {
		t.Helper()
		var form balanceOf
		stand.MustDo(t, tx.Model(&memo{}).Select("j.version").Joins("JOIN (SELECT * FROM "+from+") AS j ON true").Take(&form))
		return byForm(&form)
	},
}

// A write through a view returns rows of the table behind it.
func TestRollback_ofWhatAViewReturned(t *testing.T) {
	t.Parallel()
	db, rival := withSources(t)
	var form balanceOf
	if err := db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Exec("UPDATE accounts SET version = version + 1"))
		stand.MustDo(t, tx.Raw("UPDATE account_view SET note = 'mine' RETURNING id, balance, version").Scan(&form))
		return errUndo
	}); !errors.Is(err, errUndo) {
		t.Fatal(err)
	}
	stand.MustDo(t, db.Model(&rival).Update("balance", 55))
	if err := byForm(&form)(db); !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing) {
		t.Fatalf("written over %+v: %v", rival, err)
	}
}

func selectFrom(from string) string {
	if from == "" {
		return "FETCH FIRST FROM account_cursor"
	}
	return "SELECT * FROM " + from
}

// withSources is a database with one account, at version 1, and all that its row is read from.
func withSources(t *testing.T) (db *gorm.DB, account stand.Account) {
	t.Helper()
	db = stand.Versioned(t, []any{&stand.Account{}, &memo{}})
	account = stand.Made(t, db, stand.Account{ID: 1})
	stand.MustDo(t, db.Create(&memo{ID: 1, AccountID: 1, Version: 77}))
	var schema string
	stand.MustDo(t, db.Raw("SELECT current_schema()").Scan(&schema))
	for _, sql := range []string{
		"CREATE VIEW account_view AS SELECT * FROM accounts", "CREATE VIEW account_views AS SELECT * FROM account_view",
		"CREATE FUNCTION account_rows() RETURNS SETOF accounts LANGUAGE sql STABLE AS 'SELECT * FROM " + schema + ".accounts'",
		"CREATE TABLE accounts_part () INHERITS (accounts)",
		"WITH gone AS (DELETE FROM ONLY accounts RETURNING *) INSERT INTO accounts_part SELECT * FROM gone",
	} {
		stand.MustDo(t, db.Exec(sql))
	}
	return db, account
}

// A row can be read from what does not name its table. Whatever it was read into, a rollback reaches that too.
func TestRollback_ofReadsFromAnySource(t *testing.T) {
	t.Parallel()
	for door, read := range readsFrom {
		for what, from := range sources {
			t.Run(fmt.Sprintf("%s/%s", door, what), func(t *testing.T) {
				t.Parallel()
				if from == "" && !strings.HasPrefix(door, "Raw") {
					return
				}
				db, rival := withSources(t)
				var write func(db *gorm.DB) error
				if err := db.Transaction(func(tx *gorm.DB) error {
					stand.MustDo(t, tx.Exec("UPDATE accounts SET version = version + 1"))
					stand.MustDo(t, tx.Exec("DECLARE account_cursor CURSOR FOR SELECT * FROM accounts"))
					write = read(t, tx, from)
					return errUndo
				}); !errors.Is(err, errUndo) {
					t.Fatal(err)
				}
				for range 2 {
					stand.MustDo(t, db.Model(&rival).Update("balance", 55))
					if err := write(db); !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing) {
						t.Fatalf("written over %+v: %v", rival, err)
					}
				}
			})
		}
	}
}

// What was read from a table without a version keeps what it has, whatever the column is called.
func TestRollback_leavesOtherTables(t *testing.T) {
	t.Parallel()
	db, _ := withSources(t)
	var here string
	stand.MustDo(t, db.Raw("SELECT current_schema()").Scan(&here))
	elsewhere := here + "_other"
	for _, sql := range []string{
		"CREATE VIEW memo_view AS SELECT * FROM memos",
		"CREATE SCHEMA " + elsewhere, "CREATE VIEW " + elsewhere + ".memo_view AS SELECT * FROM accounts", // nobody means it
	} {
		stand.MustDo(t, db.Exec(sql))
	}
	t.Cleanup(func() { db.Exec("DROP SCHEMA " + elsewhere + " CASCADE") })
	var (
		row, raw, scanned memo
		written           memo
		highest           int64
		others            []*memo
		form, found       struct{ ID, Version int64 }
		byMap, byScan     = map[string]any{}, map[string]any{}
		number, count     int64
		plucked           []int64
	)
	for range 2 { // the server has been asked before
		if err := db.Transaction(func(tx *gorm.DB) error {
			stand.MustDo(t, tx.Exec("UPDATE accounts SET version = version + 1"))
			stand.MustDo(t, tx.First(&row))
			stand.MustDo(t, tx.Raw("SELECT * FROM memos WHERE id IN (1)").Find(&raw))
			stand.MustDo(t, tx.Raw("SELECT * FROM memos").Scan(&scanned))
			stand.MustDo(t, tx.Model(&memo{}).Take(&form))
			stand.MustDo(t, tx.Table("memos").Find(&found))
			stand.MustDo(t, tx.Table("memos").Take(&byMap))
			stand.MustDo(t, tx.Table("memos AS m").Scan(&byScan))
			stand.MustDo(t, tx.Raw("SELECT version FROM memos").Scan(&number))
			stand.MustDo(t, tx.Model(&memo{}).Pluck("version", &plucked))
			stand.MustDo(t, tx.Model(&stand.Account{}).Where("version = 2").Count(&count))
			for i, query := range []*gorm.DB{
				tx.Where("lower('A') = ?", "a"), tx.Where("account_id IN (SELECT id FROM accounts)"), tx.Joins("JOIN accounts ON accounts.id = account_id"),
				tx.Where("'accounts' <> ''"), tx.Where("id IS DISTINCT FROM account_id::numeric + 7"), tx.Table("memo_view"), tx.Order("COALESCE(id, length(now()::text))"),
				tx.Table("memo_view").Select("id, COALESCE(version, ?) AS version", 0),
			} {
				var m, n memo
				stand.MustDo(t, query.Session(&gorm.Session{}).Find(&m))
				stand.MustDo(t, query.Session(&gorm.Session{}).Model(&memo{}).Scan(&n))
				others = append(others, &m, &n)
				if m.Version != 77 || n.Version != 77 {
					t.Errorf("query %d read %+v and %+v", i, m, n)
				}
			}
			stand.MustDo(t, tx.Raw("UPDATE memos SET account_id = 1 RETURNING *").Scan(&written))
			stand.MustDo(t, tx.Raw("SELECT max(version) FROM memos").Scan(&highest))
			return errUndo
		}); !errors.Is(err, errUndo) {
			t.Fatal(err)
		}
		for i, version := range []any{row.Version, raw.Version, scanned.Version, form.Version, found.Version, byMap["version"], byScan["version"], number, plucked[0], count + 76, written.Version, highest} {
			if version != int64(77) {
				t.Errorf("read %d has %v", i, version)
			}
		}
		for i, m := range others {
			if m.Version != 77 {
				t.Errorf("other %d has %+v", i, m)
			}
		}
		form.Version, found.Version, others = 0, 0, nil
		row, raw, scanned, byMap, byScan, number = memo{}, memo{}, memo{}, map[string]any{}, map[string]any{}, 0
	}
}

// joinedMemo is a memo with its account.
type joinedMemo struct {
	ID, AccountID, Version int64
	Account                *stand.Account
}

func (joinedMemo) TableName() string { return "memos" }

// What is joined to a row of a table without a version does not make the row's own columns versions.
func TestRollback_leavesWhatJoinsAVersion(t *testing.T) {
	t.Parallel()
	db, rival := withSources(t)
	for name, read := range map[string]func(tx *gorm.DB, m *joinedMemo) *gorm.DB{
		"Find": func(tx *gorm.DB, m *joinedMemo) *gorm.DB { return tx.Joins("Account").Find(m) },
		"Scan": func(tx *gorm.DB, m *joinedMemo) *gorm.DB {
			return tx.Model(&joinedMemo{}).Select("memos.*, accounts.note AS note").Joins("JOIN accounts ON accounts.id = account_id").Scan(m)
		},
		"WITH": func(tx *gorm.DB, m *joinedMemo) *gorm.DB {
			return tx.Raw("WITH a AS (SELECT id FROM accounts) SELECT * FROM memos WHERE account_id IN (SELECT id FROM a)").Find(m)
		},
		"RETURNING": func(tx *gorm.DB, m *joinedMemo) *gorm.DB {
			return tx.Raw("UPDATE memos SET account_id = 1 FROM accounts WHERE accounts.id = account_id RETURNING memos.*").Scan(m)
		},
	} {
		var m joinedMemo
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
			_ = tx.Transaction(func(tx *gorm.DB) error {
				stand.MustDo(t, tx.Exec("UPDATE accounts SET version = version + 1"))
				stand.MustDo(t, read(tx, &m))
				return errUndo
			})
			if m.Version != 77 {
				t.Errorf("%s: %+v", name, m)
			}
			return nil
		}))
		if m.Account == nil {
			continue
		}
		stand.MustDo(t, db.Model(&rival).Update("balance", 55))
		if err := db.Save(m.Account).Error; !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing) {
			t.Errorf("%s: written over %+v: %v", name, rival, err)
		}
	}
}
