package hibernatelocks

import (
	"context"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/tests/docs/runner"
)

type Account struct {
	ID, Balance int64
	Version     int32 `gorm:"not null;default:0" gormlock:"version,hibernate"`
}

type Line struct{ ID, Amount int64 }

func fn(tx *gorm.DB) error { return tx.First(&Account{}).Error }

func charge(*gorm.DB) (string, error) { return "done", nil }

func job(ctx context.Context) error { return ctx.Err() }

var (
	account, before Account
	accounts        []Account
	lines           []Line
	dto             struct {
		Balance int64
		Version int32
	}
	id, name = "42", "nightly"
	held     *lease.Lease
)

func setup(world *runner.World) {
	world.Tables(&Account{}, &Line{})
	runner.Check(lease.Migrate(ctx, sqlDB, lease.ShedLock()))
	account, accounts, lines = Account{Balance: 100, Version: 7}, nil, []Line{{Amount: 1}, {Amount: 2}}
	world.Rows(&account, &Account{Balance: -1}, &lines)
	before, dto.Balance, dto.Version = account, 90, account.Version
}
