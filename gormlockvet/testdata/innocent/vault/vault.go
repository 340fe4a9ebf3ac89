// Package vault wraps GORM in types of its own, rightly.
package vault

import (
	"context"
	"net/http"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/sessionlock"
	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"
	"gorm.io/gorm"
)

type Box struct {
	Owner   string `gorm:"primaryKey"`
	Coins   int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type Entry struct {
	ID    uint
	Owner string
}

type Store struct{ *gorm.DB }

// 37: a store in a transaction is a store again.
func (s *Store) InTx(ctx context.Context, fn func(s *Store) error) error {
	return s.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return fn(&Store{tx}) })
}

func (s *Store) Insert(e *Entry) error { return s.Create(e).Error }

func (s *Store) Move(ctx context.Context, from, to *Box) error {
	return s.InTx(ctx, func(s *Store) error {
		for _, b := range []*Box{from, to} {
			if err := s.Save(b).Error; err != nil {
				return err
			}
		}
		return s.Insert(&Entry{Owner: to.Owner})
	})
}

// 38: an interface that tests replace, whose transaction is in its arguments.
type Boxes interface {
	Update(tx *Store, b *Box) error
}

type boxes struct{}

func (boxes) Update(tx *Store, b *Box) error { return tx.Save(b).Error }

type Bank struct {
	store *Store
	boxes Boxes
	locks *sessionlock.Manager
}

func (b *Bank) Deposit(c echo.Context) error {
	box := Box{Owner: c.Param("owner")}
	err := b.store.InTx(c.Request().Context(), func(tx *Store) error {
		if err := gormlock.LockRow(tx.DB, &box); err != nil {
			return err
		}
		box.Coins++
		return b.boxes.Update(tx, &box)
	})
	if err != nil {
		return echo.NewHTTPError(http.StatusConflict, err.Error())
	}
	return c.JSON(http.StatusOK, box)
}

// 39: a struct that came with the request, and is only compared.
func (b *Bank) Replace(c echo.Context) error {
	var form Box
	if err := c.Bind(&form); err != nil {
		return err
	}
	err := gormlock.Transaction(b.store.DB, func(tx *gorm.DB) error {
		return tx.Clauses(gormlock.ExpectVersion(form.Version)).Model(&form).Update("coins", form.Coins).Error
	}, gormlock.Locking(gormlock.Key("box", form.Owner), gormlock.Timeout(time.Second)))
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// 40: pgx beside GORM, on other tables, and with the version where it is the same.
func Sync(ctx context.Context, conn *pgx.Conn, owner string) error {
	if _, err := conn.Exec(ctx, `INSERT INTO entries (owner) VALUES ($1)`, owner); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, `UPDATE boxes AS b SET (coins, version) = (0, b.version + 1) WHERE owner = $1 AND version = $2`, owner, 1)
	return err
}

func boxKey(owner string) func(*gorm.DB) *gorm.DB {
	return gormlock.WithXactLock(gormlock.Key("box", owner))
}

// 41: a query in steps that ends where its lock is.
func (s *Store) Page(ctx context.Context, owner string, limit int) (all []Box, err error) {
	q := s.WithContext(ctx).Scopes(boxKey(owner))
	if limit > 0 {
		q = q.Limit(limit)
	}
	return all, q.Find(&all).Error
}
