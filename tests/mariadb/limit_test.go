package mariadb_test

import (
	"testing"

	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// GORM builds the LIMIT of an update and of a delete here, so it restricts them. It builds no joins.
func TestLimitOfAWrite(t *testing.T) {
	t.Parallel()
	db := mariaserver.Open(t, []any{&stand.Account{}})
	stand.Must(t, db.Create(&[]stand.Account{{Balance: 1}, {Balance: 2}, {Balance: 3}}).Error)
	stand.Equal(t, "Update", stand.MustDo(t, db.Model(&stand.Account{}).Where("id > 0").Order("id").Limit(1).Update("balance", 9)).RowsAffected, 1)
	stand.Equal(t, "Delete", stand.MustDo(t, db.Where("id > 0").Order("id").Limit(1).Delete(&stand.Account{})).RowsAffected, 1)
	if tx := db.Model(&stand.Account{}).Joins("JOIN accounts b ON b.id = accounts.id AND b.id > 2").Where("accounts.id > 0").Update("balance", 5); tx.Error == nil {
		t.Errorf("a join that was left out: %d rows", tx.RowsAffected)
	}
}
