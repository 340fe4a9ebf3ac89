package railslocks

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/docs/runner"
)

type Account struct {
	ID, Balance  int64
	EntriesCount *int64
	State        string
	LockVersion  int64 `gorm:"not null;default:0" gormlock:"version,rails"`
	UpdatedAt    time.Time
}

func fn(tx *gorm.DB) error { return tx.First(&Account{}).Error }

func charge(*gorm.DB) (string, error) { return "done", nil }

func job(ctx context.Context) error { return ctx.Err() }

var (
	account        Account
	accounts, pair []Account
	form           struct{ Balance, LockVersion int64 }
	id             int64
	name, jobID    = "orders:42", "4711"
	request        = "42"
	concurrencyKey = "import"
)

func setup(world *runner.World) {
	world.Tables(&Account{})
	account, accounts, pair = Account{Balance: 100, LockVersion: 7}, []Account{{Balance: 1}, {Balance: -1}}, []Account{{}, {}}
	world.Rows(&account, &accounts, &pair)
	id, form.Balance, form.LockVersion = account.ID, 90, account.LockVersion
}
