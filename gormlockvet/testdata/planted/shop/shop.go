// Package shop sells things: generic repositories, a unit of work, events.
package shop

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gormlock/gormlock"
	"gorm.io/gorm"
)

type Versioned struct {
	ID      uint64 `gorm:"primaryKey"`
	Version uint64 `gorm:"not null;default:1" gormlock:"version"`
}

type Product struct {
	Versioned
	Name  string
	Stock int
	Price int64
}

type Order struct {
	Versioned
	State string
	Lines []Line
}

type Line struct {
	ID        uint64
	OrderID   uint64
	ProductID uint64
	Count     int
}

// Coupon says twice who moves its version.
type Coupon struct {
	Versioned
	Code string
	Lock int64 `gormlock:"version"` // misuse: tags
}

// Repository is one for all models.
type Repository[T any] struct{ db *gorm.DB }

func NewRepository[T any](db *gorm.DB) Repository[T] { return Repository[T]{db: db} }

func (r Repository[T]) Find(ctx context.Context, id uint64) (T, error) {
	return gorm.G[T](r.db).Where("id = ?", id).First(ctx)
}

func (r Repository[T]) FindLocked(ctx context.Context, tx *gorm.DB, id uint64) (T, error) {
	return gorm.G[T](tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate))).Where("id = ?", id).First(ctx) // misuse: dropped
}

func (r Repository[T]) Save(v *T) error { return r.db.Save(v).Error }

func (r Repository[T]) All(ctx context.Context, each func(T) error) error {
	return r.db.Transaction(func(tx *gorm.DB) error {
		rows, err := gorm.G[T](r.db).Find(ctx) // misuse: outer
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := each(row); err != nil {
				return err
			}
		}
		return nil
	})
}

// Work is a unit of work.
type Work struct {
	tx       *gorm.DB
	Products Repository[Product]
	Orders   Repository[Order]
}

type Shop struct {
	DB       *gorm.DB
	products Repository[Product]
	orders   Repository[Order]

	mu     sync.Mutex
	cached map[uint64]Product
	sold   int
	events chan Order
}

func New(db *gorm.DB) *Shop {
	return &Shop{DB: db, products: NewRepository[Product](db), orders: NewRepository[Order](db), cached: map[uint64]Product{}}
}

func (s *Shop) Do(ctx context.Context, fn func(w *Work) error) error {
	return s.DB.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		return fn(&Work{tx: tx, Products: NewRepository[Product](tx), Orders: NewRepository[Order](tx)})
	})
}

func (s *Shop) Buy(ctx context.Context, id uint64, count int) error {
	return s.Do(ctx, func(w *Work) error {
		p, err := w.Products.Find(ctx, id)
		if err != nil {
			return err
		}
		p.Stock -= count
		if err := s.products.Save(&p); err != nil { // misuse: outer
			return err
		}
		return w.Orders.Save(&Order{State: "paid"})
	})
}

func (s *Shop) Sell(ctx context.Context, id uint64) error {
	return gormlock.Transaction(s.DB, func(tx *gorm.DB) error {
		var p Product
		if err := tx.WithContext(ctx).First(&p, id).Error; err != nil {
			return err
		}
		p.Stock--
		if err := tx.Save(&p).Error; err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cached[id] = p                 // misuse: retried
		s.sold++                         // misuse: retried
		s.events <- Order{State: "sold"} // misuse: retried
		return nil
	}, gormlock.Attempts(8), gormlock.Locking(gormlock.Key("product", id)))
}

func (s *Shop) Reprice(ctx context.Context, ids []uint64, factor func(int64) int64) ([]Product, error) {
	var changed []Product
	err := gormlock.Transaction(s.DB.WithContext(ctx), func(tx *gorm.DB) error {
		for _, id := range ids {
			var p Product
			if err := tx.First(&p, id).Error; err != nil {
				return err
			}
			p.Price = factor(p.Price)
			tx.Save(&p)                  // misuse: ignored
			changed = append(changed, p) // misuse: retried
		}
		return nil
	}, gormlock.Attempts(3))
	return changed, err
}

func (s *Shop) Cancel(ctx context.Context, id uint64) error {
	order, err := s.orders.Find(ctx, id)
	if err != nil {
		return err
	}
	order.State = "cancelled"
	return s.DB.Scopes(gormlock.WithXactLock(gormlock.Key("order", id))).Save(&order).Error // misuse: old
}

func (s *Shop) Ship(ctx context.Context, order *Order) error {
	s.DB.WithContext(ctx).Scopes(gormlock.WithXactLock(gormlock.Key("order", order.ID))) // misuse: dropped
	order.State = "shipped"
	return s.DB.WithContext(ctx).Save(order).Error
}

func (s *Shop) Restock(ctx context.Context, id uint64, count int) error {
	const sql = `
		INSERT INTO products (id, stock) VALUES (?, ?)
		ON CONFLICT (id) DO UPDATE SET stock = products.stock + excluded.stock`
	return s.DB.WithContext(ctx).Exec(sql, id, count).Error // misuse: around
}

func (s *Shop) Expire(ctx context.Context) error {
	const sql = "UPDATE orders SET state = 'expired' WHERE state = 'new'"
	return gorm.G[Order](s.DB).Exec(ctx, sql) // misuse: around
}

func (s *Shop) Wait(ctx context.Context, id uint64, paid <-chan struct{}) error {
	return s.DB.Transaction(func(tx *gorm.DB) error {
		var o Order
		if err := lock(tx, id, &o); err != nil {
			return err
		}
		select { // misuse: held
		case <-paid:
		case <-time.After(time.Minute):
			return errors.New("not paid in time")
		case <-ctx.Done():
			return ctx.Err()
		}
		o.State = "paid"
		return tx.Save(&o).Error
	})
}

func lock(tx *gorm.DB, id uint64, o *Order) error {
	o.ID = id
	return gormlock.LockRow(tx, o, gormlock.Timeout(time.Second))
}

var instance *Shop

func Default() *Shop { return instance }

func Audit(text string) error { return Default().DB.Create(&Line{}).Error }

func (s *Shop) Empty(ctx context.Context) error {
	db := Default().DB
	return db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Where("1 = 1").Delete(&Line{}).Error; err != nil {
			return err
		}
		return Audit("emptied") // misuse: outer
	})
}
