package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A callback of another plugin renews the clauses of a statement, and with them what gormlock compares.
func TestClauses_thatACallbackRenews(t *testing.T) {
	t.Parallel()
	for _, after := range []string{"gorm:before_update", "gormlock:before_write"} {
		t.Run(after, func(t *testing.T) {
			t.Parallel()
			db, a := stand.Stored(t, stand.Account{Balance: 1})
			renew := func(db *gorm.DB) {
				kept := map[string]clause.Clause{}
				for _, name := range []string{"WHERE", "SET", "FROM", "RETURNING", "INSERT", "VALUES", "ON CONFLICT"} {
					if c, is := db.Statement.Clauses[name]; is {
						kept[name] = c
					}
				}
				db.Statement.Clauses = kept
			}
			stand.Must(t, db.Callback().Update().After(after).Before("gorm:update").Register("renew", renew))
			stand.Must(t, db.Callback().Delete().After(strings.ReplaceAll(after, "update", "delete")).Before("gorm:delete").Register("renew", renew))
			stand.Must(t, db.Exec("UPDATE accounts SET balance = 20, version = version + 1").Error)
			held := a
			a.Balance = 90
			for what, err := range map[string]error{
				"Save":    db.Save(&a).Error,
				"Update":  db.Model(&held).Update("balance", 90).Error,
				"Delete":  db.Delete(&held).Error,
				"in a tx": db.Transaction(func(tx *gorm.DB) error { return tx.Model(&held).Update("balance", 90).Error }),
			} {
				if err == nil || !strings.Contains(err.Error(), "renewed Statement.Clauses") {
					t.Errorf("%s: %v", what, err)
				}
			}
			stand.Equal(t, "version in memory", a.Version, held.Version)
			row := stand.Row[stand.Account](t, db, a.ID)
			stand.Equal(t, "balance", row.Balance, 20)
		})
	}
}
