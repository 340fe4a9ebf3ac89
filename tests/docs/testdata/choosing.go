package choosing

import "context"

type Item struct{ ID, Stock int64 }

type Booking struct{ ID, Number int64 }

type Receipt struct{ Charge int64 }

type Charge struct {
	ID, Amount int64
	Customer   string
}

type Account struct {
	ID, Balance int64
	Version     int64 `gormlock:"version"`
}

type Report struct {
	ID    int64
	Fence int64 `gormlock:"fence,key=report"`
}

func importAll(context.Context) error { return nil }

var (
	id, n, amount            int64
	booking                  Booking
	customer, idempotencyKey string
	body                     []byte
	answer                   Receipt
	account                  Account
	pair                     []Account
	report                   Report
	text                     string
)
