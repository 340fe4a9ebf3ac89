package choosing

import (
	"context"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/docs/runner"
)

type Item struct{ ID, Stock int64 }

type Booking struct {
	ID     int64
	Number int64 `gorm:"unique"`
}

type Account struct {
	ID, Balance int64
	Version     int64 `gorm:"not null;default:1" gormlock:"version"`
}

func fn(*gorm.DB) error { return nil }

var other = gormlock.Key("docs", "other")

func importAll(ctx context.Context) error { return ctx.Err() }

var (
	id, n, amount int64 = 1, 2, 30
	booking       Booking
	account       Account
	pair          []Account
)

func setup(world *runner.World) {
	world.Tables(&Item{}, &Booking{}, &Account{})
	booking, account, pair = Booking{Number: 8}, Account{Balance: 100}, []Account{{}, {}}
	world.Rows(&Item{ID: id, Stock: 5}, &Booking{Number: 7}, &account, &pair)
}
