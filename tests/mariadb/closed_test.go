package mariadb_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A condition closes no bracket of gormlock, in whatever comment or string of MariaDB the other half of one hides.
func TestConditionsStayInBrackets(t *testing.T) {
	t.Parallel()
	db := mariaserver.Open(t, []any{&stand.Account{}})
	a := stand.Made(t, db, stand.Account{ID: 1, Balance: 1})
	stand.MustDo(t, db.Exec("UPDATE accounts SET version = 2"))
	for _, text := range []string{
		"1=1) OR (1=1", "1=1 # (\n) OR (1=1", "1=1 -- (\n) OR (1=1", "1=1 /* /* */ ) OR (1=1", "1=1 /*! ) OR (1=1 */", `1=1 OR note = "\" ( " ) OR (1=1`,
	} {
		for what, err := range map[string]error{
			"one":  db.Model(&a).Where(text).Update("balance", 7).Error,
			"bulk": db.Model(&stand.Account{}).Where(text).Clauses(gormlock.ExpectVersion(1)).Update("balance", 7).Error,
		} {
			if err == nil || !strings.Contains(err.Error(), "close a parenthesis") {
				t.Errorf("%s, %s: %v", text, what, err)
			}
		}
	}
	stand.Equal(t, "row", stand.Row[stand.Account](t, db, 1).Balance, 1)
	for _, text := range []string{"1=1 # )\n", `note <> "a )"`, "(1=1 /*+ ( */)", "note <> ')' -- )\n"} {
		stand.MustDo(t, db.Session(&gorm.Session{}).Model(&stand.Account{ID: 1, Version: 2}).Where(text).Clauses(gormlock.IgnoreVersion()).Update("balance", 8))
	}
}
