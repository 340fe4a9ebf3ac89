package gormlock_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
)

func assignment(column string, value any) clause.Assignment {
	return clause.Assignment{Column: clause.Column{Name: column}, Value: value}
}

func onID(set clause.Set) clause.OnConflict {
	return clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: set}
}

// V13, R8: a version that the caller assigns is not dropped in silence, whichever way it is assigned.
func TestV13_AssignedVersions(t *testing.T) {
	t.Parallel()
	onBoth(t, []any{&account{}, &railsRow{}}, assignedVersions)
}

func assignedVersions(t *testing.T, db *gorm.DB) {
	a := account{Balance: 1}
	must(t, db.Create(&a).Error)
	r := railsRow{}
	must(t, db.Create(&r).Error)
	accounts := gorm.G[account](db).Where("id = ?", a.ID)
	for name, write := range map[string]func() error{
		"Set": func() error {
			_, err := accounts.Set(assignment("version", 7), assignment("balance", 7)).Update(t.Context())
			return err
		},
		"upsert": func() error {
			return db.Clauses(onID(clause.Set{assignment("balance", 7), assignment("version", 7)})).Create(&account{ID: a.ID}).Error
		},
		"upsert by an expression": func() error {
			bump := gorm.Expr("accounts.version + 1")
			return db.Clauses(onID(clause.Set{assignment("version", bump)})).Create(&account{ID: a.ID}).Error
		},
	} {
		if err := write(); err == nil || !strings.Contains(err.Error(), "cannot assign the version") {
			t.Errorf("%s: %v", name, err)
		}
		equal(t, name, row[account](t, db, a.ID), a)
	}

	rails := func(version any) error {
		_, err := gorm.G[railsRow](db).Where("id = ?", r.ID).Set(assignment("lock_version", version), assignment("name", "n")).Update(t.Context())
		return err
	}
	mustStale(t, rails(5))
	must(t, rails(0))
	equal(t, "moved", row[railsRow](t, db, r.ID).LockVersion, 1)
	if err := rails(nil); err == nil || !strings.Contains(err.Error(), "cannot be NULL") { // R10
		t.Error(err)
	}
}

// V2: what an upsert lets the server work out comes back with the version, or the next Save would overwrite it.
func TestV2_ComputedByAnUpsert(t *testing.T) {
	t.Parallel()
	onBoth(t, []any{&account{}}, func(t *testing.T, db *gorm.DB) {
		a := account{Balance: 100}
		must(t, db.Create(&a).Error)
		add := onID(clause.Set{assignment("balance", gorm.Expr("accounts.balance + excluded.balance"))})
		a.Balance = 10
		must(t, db.Clauses(add).Create(&a).Error)
		equal(t, "in memory", a, account{ID: a.ID, Balance: 110, Version: 2})
		equal(t, "stored", row[account](t, db, a.ID), a)

		a.Balance = 5
		both := []account{a, {Balance: 7}}
		must(t, db.Clauses(add).Create(&both).Error)
		equal(t, "in memory", both[0], account{ID: a.ID, Balance: 115, Version: 3})
		must(t, db.Save(&both[0]).Error)
		equal(t, "saved", row[account](t, db, a.ID).Balance, 115)
	})
}

// Raw SQL that is to compare something is an error: nothing can be added to its text.
func TestNothingIsComparedInRawSQL(t *testing.T) {
	t.Parallel()
	onBoth(t, []any{&account{}}, func(t *testing.T, db *gorm.DB) {
		a := account{Balance: 1}
		must(t, db.Create(&a).Error)
		for name, c := range map[string]clause.Expression{
			"ExpectVersion": gormlock.ExpectVersion(99), "IfUnchanged": gormlock.IfUnchanged(&account{}, "balance"),
		} {
			tx := db.Clauses(c)
			for way, err := range map[string]error{
				"Exec": tx.Exec("UPDATE accounts SET balance = 5 WHERE id = ?", a.ID).Error,
				"Raw":  db.Clauses(c).Raw("UPDATE accounts SET balance = 6 WHERE id = ? RETURNING *", a.ID).Scan(&account{}).Error,
				"Rows": rowsError(db.Clauses(c).Raw("UPDATE accounts SET balance = 7 WHERE id = ? RETURNING id", a.ID)),
			} {
				if err == nil || !strings.Contains(err.Error(), "in raw SQL") {
					t.Errorf("%s, %s: %v", name, way, err)
				}
			}
			equal(t, name, row[account](t, db, a.ID), a)
			// Savepoints are text too, and the statement's own clauses are not about them.
			must(t, db.Transaction(func(tx *gorm.DB) error {
				return tx.Clauses(c).Session(&gorm.Session{}).Transaction(func(*gorm.DB) error { return nil })
			}))
		}
	})
}

func rowsError(db *gorm.DB) error {
	rows, err := db.Rows()
	if err != nil {
		return err
	}
	defer rows.Close()
	return rows.Err()
}
