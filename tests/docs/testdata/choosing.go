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

type Receipt struct{ Charge int64 }

type Charge struct {
	ID, Amount int64
	Customer   string
}

type Account struct {
	ID, Balance int64
	Version     int64 `gorm:"not null;default:1" gormlock:"version"`
}

type Report struct {
	ID    int64
	Body  string
	Fence int64 `gorm:"not null;default:0" gormlock:"fence,key=report"`
}

func fn(*gorm.DB) error { return nil }

var other = gormlock.Key("docs", "other")

func importAll(ctx context.Context) error { return ctx.Err() }

var (
	id, n, amount            int64 = 1, 2, 30
	booking                  Booking
	customer, idempotencyKey = "alice", "4711"
	body                     = []byte("30 of alice")
	answer                   Receipt
	account                  Account
	pair                     []Account
	report                   Report
)

func setup(world *runner.World) {
	world.Tables(&Item{}, &Booking{}, &Charge{}, &Account{}, &Report{})
	booking, answer, account, pair, report = Booking{Number: 8}, Receipt{}, Account{Balance: 100}, []Account{{}, {}}, Report{}
	world.Rows(&Item{ID: id, Stock: 5}, &Booking{Number: 7}, &account, &pair)
	runner.Check(db.Clauses(gormlock.IgnoreFence()).Create(&report))
}
