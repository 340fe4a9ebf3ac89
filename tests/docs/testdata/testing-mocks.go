package testingmocks

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/docs/runner"
)

type Account struct {
	ID, Balance int64
	Version     int64 `gorm:"not null;default:1" gormlock:"version"`
}

func Withdraw(db *gorm.DB, id, amount int64) error {
	return gormlock.Transaction(db, func(tx *gorm.DB) error {
		var account Account
		if err := tx.First(&account, id).Error; err != nil {
			return err
		}
		return tx.Model(&account).Update("balance", account.Balance-amount).Error
	}, gormlock.Locking(accountKey(id), gormlock.Timeout(time.Second)))
}

func openDB(*testing.T) *gorm.DB { return db }

func accountKey(id int64) lockkey.Key { return gormlock.Key("guide", id) }

var (
	t          *testing.T
	id, amount int64 = 7, 10
)

func setup(world *runner.World) {
	t = world.T
	world.Tables(&Account{})
	world.Rows(&Account{ID: id, Balance: 100})
}
