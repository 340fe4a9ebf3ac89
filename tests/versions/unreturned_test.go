package versions_test

import (
	"strings"
	"testing"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// Without RETURNING an upsert does not say which rows it found, and would store again what others deleted.
func TestUpsert_withoutReturning(t *testing.T) {
	t.Parallel()
	base := stand.Versioned(t, []any{&stand.Account{}})
	list := []stand.Account{{ID: 1, Balance: 1}, {ID: 2, Balance: 1}}
	stand.Must(t, base.Create(&list).Error)
	pool, err := base.DB()
	stand.Must(t, err)
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool, WithoutReturning: true}), &gorm.Config{Logger: logger.Discard})
	stand.Must(t, err)
	stand.Must(t, db.Use(gormlock.New()))
	stand.MustDo(t, db.Order("id").Find(&list))
	stand.Must(t, base.Exec("DELETE FROM accounts WHERE id = 1").Error)
	list[0].Balance, list[1].Balance = 90, 90
	for what, err := range map[string]error{
		"Save":      db.Save(&list).Error,
		"UpdateAll": db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&list).Error,
	} {
		if err == nil || !strings.Contains(err.Error(), "WithoutReturning") {
			t.Errorf("%s: %v", what, err)
		}
	}
	var rows []stand.Account
	stand.MustDo(t, base.Find(&rows))
	if len(rows) != 1 || rows[0].Balance != 1 {
		t.Errorf("rows: %+v", rows)
	}
	stand.Must(t, db.Save(&list[1]).Error)
	stand.Equal(t, "row", stand.Row[stand.Account](t, base, int64(2)), list[1])
	stand.MustStale(t, db.Save(&list[0]).Error)
}
