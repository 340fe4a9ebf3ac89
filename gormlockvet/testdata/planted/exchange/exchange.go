// Package exchange wraps GORM in types of its own.
package exchange

import (
	"context"
	"errors"
	"net/http"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/sessionlock"
	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"
	"gorm.io/gorm"
)

type Wallet struct {
	Owner   string `gorm:"primaryKey"`
	Coins   int64
	Version uint32 `gorm:"not null;default:1" gormlock:"version"`
}

type Trade struct {
	ID    uint
	Buyer string
	Coins int64
}

// Store is a db with methods.
type Store struct{ *gorm.DB }

// Tx is a transaction with methods.
type Tx struct{ *gorm.DB }

func (s *Store) InTx(ctx context.Context, fn func(tx *Tx) error) error {
	return s.WithContext(ctx).Transaction(func(db *gorm.DB) error { return fn(&Tx{db}) })
}

func (s *Store) Insert(t *Trade) error { return s.Create(t).Error }

func (t *Tx) Insert(trade *Trade) error { return t.Create(trade).Error }

func (s *Store) Move(ctx context.Context, from, to *Wallet, coins int64) error {
	return s.InTx(ctx, func(tx *Tx) error {
		from.Coins -= coins
		to.Coins += coins
		if err := tx.Save(from).Error; err != nil {
			return err
		}
		if err := s.Save(to).Error; err != nil { // misuse: outer
			return err
		}
		return s.Insert(&Trade{Buyer: to.Owner, Coins: coins}) // misuse: outer
	})
}

// Wallets is what the desk needs, with one implementation.
type Wallets interface {
	Find(ctx context.Context, owner string) (*Wallet, error)
	Update(ctx context.Context, w *Wallet) error
}

type wallets struct{ store *Store }

func NewWallets(s *Store) Wallets { return &wallets{s} }

func (w *wallets) Find(ctx context.Context, owner string) (*Wallet, error) {
	found := &Wallet{}
	err := w.store.WithContext(ctx).Where("owner = ?", owner).Take(found).Error
	return found, err
}

func (w *wallets) Update(ctx context.Context, wallet *Wallet) error {
	return w.store.WithContext(ctx).Save(wallet).Error
}

type Market struct {
	store   *Store
	wallets Wallets
	locks   *sessionlock.Manager
}

func (m *Market) Tip(ctx context.Context, owner string) error {
	wallet, err := m.wallets.Find(ctx, owner)
	if err != nil {
		return err
	}
	return m.locks.Do(ctx, gormlock.Key("wallet", owner), func(ctx context.Context) error {
		wallet.Coins++
		return m.wallets.Update(ctx, wallet) // misuse: old
	})
}

func (m *Market) Close(c echo.Context) error {
	return gormlock.Transaction(m.store.DB, func(tx *gorm.DB) error {
		w := Wallet{Owner: c.Param("owner")}
		if err := gormlock.LockRow(tx, &w); err != nil {
			return err
		}
		if err := tx.Delete(&w).Error; err != nil {
			return err
		}
		return c.JSON(http.StatusOK, w) // misuse: retried
	}, gormlock.Attempts(3))
}

// Limit is a middleware that reads what is used later.
func (m *Market) Limit(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := m.store.Transaction(func(tx *gorm.DB) error {
			if _, err := m.wallets.Find(c.Request().Context(), c.Param("owner")); err != nil { // misuse: outer
				return err
			}
			return tx.Create(&Trade{Buyer: c.Param("owner")}).Error
		})
		return errors.Join(err, next(c))
	}
}

// Import comes from another program's file, by pgx.
func Import(ctx context.Context, conn *pgx.Conn, owner string, coins int64) error {
	const upsert = `INSERT INTO wallets AS w (owner, coins, version) VALUES ($1, $2, 1)
		ON CONFLICT (owner) DO UPDATE SET coins = w.coins + excluded.coins`
	if _, err := conn.Exec(ctx, upsert, owner, coins); err != nil { // misuse: around
		return err
	}
	batch := &pgx.Batch{}
	batch.Queue(`DELETE FROM public.wallets WHERE owner = $1`, owner) // misuse: around
	return conn.SendBatch(ctx, batch).Close()
}

func lockFor(owner string) func(*gorm.DB) *gorm.DB {
	return gormlock.WithXactLock(gormlock.Key("wallet", owner))
}

// Page builds a query in steps.
func (s *Store) Page(ctx context.Context, owner string, limit int) ([]Wallet, error) {
	q := s.WithContext(ctx)
	q = q.Scopes(lockFor(owner))
	if limit > 0 {
		q = q.Limit(limit)
	}
	return gorm.G[Wallet](q).Find(ctx) // misuse: dropped
}
