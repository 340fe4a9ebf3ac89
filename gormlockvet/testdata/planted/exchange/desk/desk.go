// Package desk says itself which methods it wants, as Go programs do.
package desk

import (
	"context"

	"example.com/shop/planted/exchange"
	"gorm.io/gorm"
)

type finder interface {
	Find(ctx context.Context, owner string) (*exchange.Wallet, error)
}

type Desk struct {
	db      *gorm.DB
	wallets finder
}

func New(db *gorm.DB) *Desk {
	return &Desk{db: db, wallets: exchange.NewWallets(&exchange.Store{DB: db})}
}

func (d *Desk) Quote(ctx context.Context, owner string) error {
	return d.db.Transaction(func(tx *gorm.DB) error {
		w, err := d.wallets.Find(ctx, owner) // misuse: outer
		if err != nil {
			return err
		}
		return tx.Create(&exchange.Trade{Buyer: owner, Coins: w.Coins}).Error
	})
}
