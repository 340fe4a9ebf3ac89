package versions_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// TestVersion_behindAComment: a comment at the end of a condition or a value swallows neither the check nor the new version.
func TestVersion_behindAComment(t *testing.T) {
	t.Parallel()
	const positive = "balance > 0 -- never below zero"
	stand.OnEach(t, []any{&stand.Account{}}, func(t *testing.T, db *gorm.DB) {
		for name, write := range map[string]func(a *stand.Account) error{
			"Update": func(a *stand.Account) error { return db.Model(a).Where(positive).Update("balance", 5).Error },
			"Updates": func(a *stand.Account) error {
				return db.Where(positive).Updates(&stand.Account{ID: a.ID, Version: a.Version, Balance: 5}).Error
			},
			"Save":   func(a *stand.Account) error { a.Balance = 5; return db.Where(positive).Save(a).Error },
			"Delete": func(a *stand.Account) error { return db.Where(positive).Delete(a).Error },
			"ExpectVersion": func(a *stand.Account) error {
				return db.Clauses(gormlock.ExpectVersion(a.Version)).Model(&stand.Account{}).Where("id = 1 -- the first").Update("balance", 5).Error
			},
			"a value": func(a *stand.Account) error {
				return db.Model(a).Update("balance", gorm.Expr("balance + 1 -- one more")).Error
			},
		} {
			for _, is := range []string{"fresh", "stale"} {
				stand.Must(t, db.Exec("DELETE FROM accounts").Error)
				stand.Must(t, db.Create(&[]stand.Account{{ID: 1, Balance: 10}, {ID: 2, Balance: 10}}).Error)
				var a stand.Account
				stand.Must(t, db.First(&a, 1).Error)
				if is == "stale" {
					stand.Must(t, db.Model(&stand.Account{ID: 1, Version: 1}).Update("balance", 77).Error)
				}
				switch err := write(&a); {
				case is == "stale":
					stand.MustStale(t, err)
				case err != nil:
					t.Errorf("%s: %v", name, err)
				case name != "Delete":
					stand.Equal(t, name+": the version", stand.Row[stand.Account](t, db, 1).Version, 2)
				}
				stand.Equal(t, name+": the other row", stand.Row[stand.Account](t, db, 2).Balance, 10)
			}
		}
		stand.Must(t, db.Exec("DELETE FROM accounts").Error)
		stand.Must(t, db.Create(&[]stand.Account{{ID: 1, Balance: 10}, {ID: 2, Balance: 10}}).Error)
		stand.Must(t, db.Model(&stand.Account{}).Where("id = 1 -- the first").Update("balance", gorm.Expr("balance + 1 -- one more")).Error)
		first, second := stand.Row[stand.Account](t, db, 1), stand.Row[stand.Account](t, db, 2)
		stand.Equal(t, "many: the version", first.Version, 2)
		stand.Equal(t, "many: the version of another row", second.Version, 1)
		stand.Equal(t, "many: another row", second.Balance, 10)
	})
}
