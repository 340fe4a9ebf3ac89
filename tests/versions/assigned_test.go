package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
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
	stand.OnEachAndMySQL(t, []any{&stand.Account{}, &railsRow{}}, assignedVersions)
}

func assignedVersions(t *testing.T, db *gorm.DB) {
	a := stand.Made(t, db, stand.Account{Balance: 1})
	r := stand.Made(t, db, railsRow{})
	accounts := gorm.G[stand.Account](db).Where("id = ?", a.ID)
	for name, write := range map[string]func() error{
		"upsert": func() error {
			return db.Clauses(onID(clause.Set{assignment("balance", 7), assignment("version", 7)})).Create(&stand.Account{ID: a.ID}).Error
		},
		"upsert by an expression": func() error {
			bump := gorm.Expr("accounts.version + 1")
			return db.Clauses(onID(clause.Set{assignment("version", bump)})).Create(&stand.Account{ID: a.ID}).Error
		},
	} {
		if err := write(); err == nil || !strings.Contains(err.Error(), "cannot assign the version") {
			t.Errorf("%s: %v", name, err)
		}
		stand.Equal(t, name, stand.Row[stand.Account](t, db, a.ID), a)
	}

	_, err := accounts.Set(assignment("version", 7), assignment("balance", 7)).Update(t.Context())
	stand.Equal[any](t, "Set names the version expected", stand.MustBeStale(t, err).Expected, int64(7))
	_, err = accounts.Set(assignment("version", 1), assignment("balance", 7)).Update(t.Context())
	stand.Must(t, err)
	stand.Equal(t, "moved", stand.Row[stand.Account](t, db, a.ID).Version, 2)

	rails := func(version any) error {
		_, err := gorm.G[railsRow](db).Where("id = ?", r.ID).Set(assignment("lock_version", version), assignment("name", "n")).Update(t.Context())
		return err
	}
	stand.MustStale(t, rails(5))
	stand.Must(t, rails(0))
	stand.Equal(t, "moved", stand.Row[railsRow](t, db, r.ID).LockVersion, 1)
	if err := rails(nil); err == nil || !strings.Contains(err.Error(), "cannot be NULL") { // R10
		t.Error(err)
	}
}

// V2: what an upsert lets the server work out comes back with the version, or the next Save would overwrite it.
func TestV2_ComputedByAnUpsert(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&stand.Account{}}, func(t *testing.T, db *gorm.DB) {
		a := stand.Made(t, db, stand.Account{Balance: 100})
		add := onID(clause.Set{assignment("balance", gorm.Expr("accounts.balance + excluded.balance"))})
		a.Balance = 10
		stand.Must(t, db.Clauses(add).Create(&a).Error)
		stand.Equal(t, "in memory", a, stand.Account{ID: a.ID, Balance: 110, Version: 2})
		stand.Equal(t, "stored", stand.Row[stand.Account](t, db, a.ID), a)

		a.Balance = 5
		both := []stand.Account{a, {Balance: 7}}
		stand.Must(t, db.Clauses(add).Create(&both).Error)
		stand.Equal(t, "in memory", both[0], stand.Account{ID: a.ID, Balance: 115, Version: 3})
		stand.Must(t, db.Save(&both[0]).Error)
		stand.Equal(t, "saved", stand.Row[stand.Account](t, db, a.ID).Balance, 115)
	})
}

// Raw SQL that is to compare something is an error: nothing can be added to its text.
func TestNothingIsComparedInRawSQL(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&stand.Account{}}, func(t *testing.T, db *gorm.DB) {
		a := stand.Made(t, db, stand.Account{Balance: 1})
		for name, c := range map[string]clause.Expression{
			"ExpectVersion": gormlock.ExpectVersion(99), "IfMatch": stand.IfMatch(`"98"`, `"99"`), "IfMatch, any": stand.IfMatch("*"), "IfUnchanged": gormlock.IfUnchanged(&stand.Account{}, "balance"),
		} {
			tx := db.Clauses(c)
			for way, err := range map[string]error{
				"Exec": tx.Exec("UPDATE accounts SET balance = 5 WHERE id = ?", a.ID).Error,
				"Raw":  db.Clauses(c).Raw("UPDATE accounts SET balance = 6 WHERE id = ? RETURNING *", a.ID).Scan(&stand.Account{}).Error,
				"Rows": rowsError(db.Clauses(c).Raw("UPDATE accounts SET balance = 7 WHERE id = ? RETURNING id", a.ID)),
			} {
				if err == nil || !strings.Contains(err.Error(), "in raw SQL") {
					t.Errorf("%s, %s: %v", name, way, err)
				}
			}
			stand.Equal(t, name, stand.Row[stand.Account](t, db, a.ID), a)
			// Savepoints are text too, and the statement's own clauses are not about them.
			stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
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
