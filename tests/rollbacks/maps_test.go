package rollbacks_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// balanceOf is a form of an account. It has no tag.
type balanceOf struct {
	ID, Balance, Version int64
}

// otherReads read the row into something else than its model. They return a write by what was read.
var otherReads = map[string]func(t *testing.T, tx *gorm.DB) (write func(db *gorm.DB) error){
	"Take of a map": func(t *testing.T, tx *gorm.DB) func(*gorm.DB) error {
		t.Helper()
		m := map[string]any{}
		stand.MustDo(t, tx.Model(&stand.Account{}).Take(m))
		return byMap(m)
	},
	"Take of a nil map": func(t *testing.T, tx *gorm.DB) func(*gorm.DB) error {
		t.Helper()
		var m map[string]any
		stand.MustDo(t, tx.Model(&stand.Account{}).Select("balance", "version").Take(&m))
		return byMap(m)
	},
	"Find of maps": func(t *testing.T, tx *gorm.DB) func(*gorm.DB) error {
		t.Helper()
		var all []map[string]any
		stand.MustDo(t, tx.Model(&stand.Account{}).Find(&all))
		return byMap(all[0])
	},
	"Scan of maps": func(t *testing.T, tx *gorm.DB) func(*gorm.DB) error {
		t.Helper()
		var all []map[string]any
		stand.MustDo(t, tx.Model(&stand.Account{}).Scan(&all))
		return byMap(all[0])
	},
	"Raw and Scan of a map": func(t *testing.T, tx *gorm.DB) func(*gorm.DB) error {
		t.Helper()
		m := map[string]any{}
		stand.MustDo(t, tx.Raw("SELECT id, balance, version FROM accounts").Scan(&m))
		return byMap(m)
	},
	"Table and Find of maps": func(t *testing.T, tx *gorm.DB) func(*gorm.DB) error {
		t.Helper()
		var all []map[string]any
		stand.MustDo(t, tx.Table("accounts").Find(&all))
		return byMap(all[0])
	},
	"Pluck": func(t *testing.T, tx *gorm.DB) func(*gorm.DB) error {
		t.Helper()
		var versions []int64
		stand.MustDo(t, tx.Model(&stand.Account{}).Pluck("version", &versions))
		return func(db *gorm.DB) error { return byVersion(db, versions[0]) }
	},
	"Pluck of a table, what may be NULL": func(t *testing.T, tx *gorm.DB) func(*gorm.DB) error {
		t.Helper()
		var versions []sql.NullInt64
		stand.MustDo(t, tx.Table("accounts").Pluck("version", &versions))
		return func(db *gorm.DB) error { return byVersion(db, versions[0]) }
	},
	"Select and Scan of one number": func(t *testing.T, tx *gorm.DB) func(*gorm.DB) error {
		t.Helper()
		var version int32
		stand.MustDo(t, tx.Model(&stand.Account{}).Select("version").Scan(&version))
		return func(db *gorm.DB) error { return byVersion(db, version) }
	},
	"Raw and Scan of pointers": func(t *testing.T, tx *gorm.DB) func(*gorm.DB) error {
		t.Helper()
		var versions []*uint64
		stand.MustDo(t, tx.Raw(`SELECT a."version" AS n FROM accounts a`).Scan(&versions))
		return func(db *gorm.DB) error { return byVersion(db, versions[0]) }
	},
	"Raw and Scan of RETURNING":           scanned("UPDATE accounts SET note = 'x' WHERE id = 1 RETURNING version"),
	"Raw and Scan behind a comment":       scanned("/* the */ SELECT version FROM accounts"),
	"Raw and Scan of WITH":                scanned("WITH a AS (SELECT * FROM accounts) SELECT version FROM a"),
	"Raw and Scan in brackets":            scanned("(SELECT version FROM accounts)"),
	"Raw and Scan of another type":        scanned("SELECT version::numeric::int FROM accounts"),
	"Raw and Scan of the greatest":        scanned("SELECT COALESCE(max(version), 0) FROM accounts"),
	"Raw and Scan of another name within": scanned("SELECT v FROM (SELECT version AS v FROM accounts) AS a"),
	"Pluck of an expression": func(t *testing.T, tx *gorm.DB) func(*gorm.DB) error {
		t.Helper()
		var version int64
		stand.MustDo(t, tx.Model(&stand.Account{}).Pluck("version::bigint", &version))
		return func(db *gorm.DB) error { return byVersion(db, version) }
	},
	"a form": func(t *testing.T, tx *gorm.DB) func(*gorm.DB) error {
		t.Helper()
		var form balanceOf
		stand.MustDo(t, tx.Model(&stand.Account{}).Take(&form))
		return byForm(&form)
	},
	"Table and a form": func(t *testing.T, tx *gorm.DB) func(*gorm.DB) error {
		t.Helper()
		var forms []*balanceOf
		stand.MustDo(t, tx.Table("accounts").Find(&forms))
		return byForm(forms[0])
	},
	"Raw and Scan of a form": func(t *testing.T, tx *gorm.DB) func(*gorm.DB) error {
		t.Helper()
		var form balanceOf
		stand.MustDo(t, tx.Raw("SELECT * FROM accounts").Scan(&form))
		return byForm(&form)
	},
}

func scanned(query string) func(t *testing.T, tx *gorm.DB) func(*gorm.DB) error {
	return func(t *testing.T, tx *gorm.DB) func(*gorm.DB) error {
		t.Helper()
		var version int64
		stand.MustDo(t, tx.Raw(query).Scan(&version))
		return func(db *gorm.DB) error { return byVersion(db, version) }
	}
}

func byMap(m map[string]any) func(db *gorm.DB) error {
	return func(db *gorm.DB) error {
		m["balance"] = 7
		return db.Model(&stand.Account{ID: 1}).Updates(m).Error
	}
}

func byForm(form *balanceOf) func(db *gorm.DB) error {
	return func(db *gorm.DB) error {
		form.Balance = 7
		return db.Model(&stand.Account{ID: 1}).Updates(form).Error
	}
}

func byVersion(db *gorm.DB, version any) error {
	return db.Clauses(gormlock.ExpectVersion(version)).Model(&stand.Account{ID: 1}).Update("balance", 7).Error
}

// V1: a map, a form or a number that was read after a write carries the version of the row too, which a rollback takes back.
func TestV1_MapsOfRolledBackWrites(t *testing.T) {
	t.Parallel()
	for name, read := range otherReads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&stand.Account{}})
			rival := stand.Made(t, db, stand.Account{ID: 1})
			var write func(db *gorm.DB) error
			if err := db.Transaction(func(tx *gorm.DB) error {
				stand.MustDo(t, tx.Exec("UPDATE accounts SET version = version + 1"))
				write = read(t, tx)
				return errUndo
			}); !errors.Is(err, errUndo) {
				t.Fatal(err)
			}
			for range 3 {
				stand.MustDo(t, db.Model(&rival).Update("balance", 55))
				if err := write(db); !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing) {
					t.Fatalf("written over %+v: %v", rival, err)
				}
			}
		})
	}
}

// What was read before a write, or is committed, is what its row is.
func TestV1_MapsOfCommittedWrites(t *testing.T) {
	t.Parallel()
	for name, read := range otherReads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&stand.Account{}})
			stand.Made(t, db, stand.Account{ID: 1})
			var write func(db *gorm.DB) error
			stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
				stand.MustDo(t, tx.Exec("UPDATE accounts SET version = version + 1"))
				write = read(t, tx)
				return nil
			}))
			stand.Must(t, write(db))
			stand.MustStale(t, write(db))
			if strings.Contains(name, "RETURNING") {
				return // it writes itself
			}
			if err := db.Transaction(func(tx *gorm.DB) error {
				write = read(t, tx)
				return errUndo
			}); !errors.Is(err, errUndo) {
				t.Fatal(err)
			}
			stand.Must(t, write(db))
		})
	}
}

// G31: where nobody says how a transaction ends, what a query of a model reads after a write counts as not read.
func TestG31_MapsOfTransactionsThatNobodySees(t *testing.T) {
	t.Parallel()
	for name, read := range otherReads {
		if strings.Contains(name, "Scan") {
			continue // nobody sees where it puts what it reads
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, within := stand.Unseen["PlainTransactions"](t)
			rival := stand.Made(t, db, stand.Account{ID: 1})
			var write func(db *gorm.DB) error
			if err := within(func(tx *gorm.DB) error {
				stand.MustDo(t, tx.Exec("UPDATE accounts SET version = version + 1"))
				write = read(t, tx)
				return errUndo
			}); !errors.Is(err, errUndo) {
				t.Fatal(err)
			}
			stand.MustDo(t, db.Model(&rival).Update("balance", 55))
			if err := write(db); !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing) {
				t.Fatalf("written over %+v: %v", rival, err)
			}
		})
	}
}
